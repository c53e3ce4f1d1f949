// How long each script of the Redis store holds the server, by batch size and payload: the lower quartile of the times in SLOWLOG (what
// else the machine does only ever adds), in a lane with 10,000 other jobs. Starts a server of its own. Needs a build: `node bench/decision/redis-batch.mjs [ROUNDS] [PATTERN]`.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { LaneKeys } from '../../dist/src/backends/redis/key.js'
import { BATCH } from '../../dist/src/backends/redis/session.js'
import { loadCatalog } from '../../dist/src/lua/catalog.js'

const ROUNDS = Number(process.argv[2] ?? 9)
const PATTERN = new RegExp(process.argv[3] ?? '')
const SIZES = [1, 10, 50, 100, 200, 500]
const PAYLOADS = { '100 B': 100, '10 kB': 10_000 }
const HOUR = 3_600_000
const WORKER = 'host-1234-abcdef'

const quartile = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 4)]
const keys = new LaneKeys('bench', 'default')
const scripts = loadCatalog()
let redis
let bytes = 100
let next = 0

async function run(name, args) {
  const script = scripts[name]
  return redis.evalsha(script.sha1, script.keys.length, ...keys.of(script), ...args)
}

/** Microseconds that the server says this call took. */
async function timed(name, args) {
  await redis.slowlog('RESET')
  await run(name, args)
  const entries = await redis.slowlog('GET', 10)
  return entries.find(([, , , [command]]) => command.toLowerCase() === 'evalsha')[2]
}

const body = () => `send\n\nj"${'x'.repeat(bytes)}"`
const newIds = (count) => {
  next += count
  return Array.from({ length: count }, (_, index) => `01J9ZK3V7Q${String(next - count + index).padStart(16, '0')}`)
}
const jobs = (ids, spec = '') => ids.flatMap((id) => [id, spec, body()])

async function enqueue(count, spec) {
  const ids = newIds(count)
  for (let at = 0; at < ids.length; at += 50) await run('job_enqueue', jobs(ids.slice(at, at + 50), spec))
  return ids
}

/** Ids with their tokens. */
async function claim(count, leaseMs = HOUR) {
  const held = []
  while (held.length < count) {
    const reply = await run('job_turn', [count - held.length, WORKER, 'nonce', leaseMs, 0, 0, 0, 0, 0])
    const runs = await redis.hmget(keys.key('run'), ...reply[4])
    held.push(...reply[4].map((id, index) => [id, runs[index].slice(1).split('|')[0]]))
  }
  return held
}

async function take(count, leaseMs) {
  await enqueue(count, '9    ')
  return claim(count, leaseMs)
}

const turn = (limit, [forgotten, kept, others], args) => [
  'job_turn',
  [limit, WORKER, 'n2', HOUR, 0, 0, forgotten, kept, others, ...args],
]
const keptArgs = (held, keepMs) => [
  keepMs,
  keepMs,
  held.length,
  ...held.flatMap(([id, token]) => [id, token, 5, `=j"${'x'.repeat(bytes)}"`]),
]
const otherArgs = (kind, [id, token], extra = '') => [
  kind,
  id,
  token,
  '',
  5,
  'failed',
  0,
  '{"code":"X","message":"something failed"}',
  '{}',
  extra,
]

/** Each makes what it needs and gives the call to be timed. */
const CASES = {
  'job_enqueue: plain': async (n) => ['job_enqueue', jobs(newIds(n))],
  'job_enqueue: priority, delay, deadline, key': async (n) => {
    const ids = newIds(n)
    const spec = (id, index) =>
      index % 2 === 0 ? `5   ${Date.now() + HOUR} key-${id}` : `0 ${Date.now() + HOUR}   key-${id}`
    return ['job_enqueue', ids.flatMap((id, index) => [id, spec(id, index), body()])]
  },
  'job_turn: claims': async (n) => turn(n, [0, 0, 0], []),
  'job_turn: claims from priorities': async (n) => {
    await enqueue(n, '9    ')
    return turn(n, [0, 0, 0], [])
  },
  'job_turn: completions not kept, claims': async (n) => {
    const held = await take(n)
    return turn(n, [n, 0, 0], held.flat())
  },
  'job_turn: completions kept, claims': async (n) => {
    const held = await take(n)
    return turn(n, [0, 1, 0], keptArgs(held, HOUR))
  },
  'job_turn: retries': async (n) => {
    const held = await take(n)
    return turn(
      -1,
      [0, 0, n],
      held.flatMap((each) => otherArgs('retry', each, HOUR)),
    )
  },
  'job_turn: dead': async (n) => {
    const held = await take(n)
    return turn(
      -1,
      [0, 0, n],
      held.flatMap((each) => otherArgs('dead', each, 'X')),
    )
  },
  lease_renew: async (n) => ['lease_renew', [HOUR, ...(await take(n)).flat()]],
  job_note: async (n) => [
    'job_note',
    [n, ...(await take(n)).flatMap(([id, token]) => [id, token, `j"${'x'.repeat(bytes)}"`, 0, 0])],
  ],
  'job_note: a line to each log of 100': async (n) => {
    const held = await take(n)
    const epochOf = (token) => token.slice(0, token.indexOf(':'))
    const lines = (token) => Array.from({ length: 100 }, (_, at) => `${epochOf(token)} ${at + 1} ${'x'.repeat(150)}`)
    for (const [id, token] of held) await run('job_note', [1, id, token, '', 100, 100, ...lines(token)])
    const more = held.flatMap(([id, token]) => [id, token, '', 100, 1, `${epochOf(token)} 101 ${'x'.repeat(150)}`])
    return ['job_note', [n, ...more]]
  },
  job_states: async (n) => ['job_states', await enqueue(n)],
  'lease_reap: decisions': async (n) => {
    const held = await take(n, -1)
    return ['lease_reap', [0, n, ...held.flatMap((each) => otherArgs('requeue', each))]]
  },
  'lease_reap: names': async (n) => {
    await take(n, -1)
    return ['lease_reap', [n, 0]]
  },
  lease_find: async (n) => {
    await take(n)
    return ['lease_find', [':somebody:else.', 0, n]]
  },
  'job_cancel: waiting': async (n) => ['job_cancel', [0, HOUR, '{}', ...(await enqueue(n))]],
  'job_cancel: by force': async (n) => ['job_cancel', [1, HOUR, '{}', ...(await take(n)).map(([id]) => id)]],
  job_promote: async (n) => ['job_promote', await enqueue(n, `0 ${Date.now() + HOUR}   `)],
  'job_read: values': async (n) => ['job_read', [1, ...(await enqueue(n))]],
  'job_read: no values': async (n) => ['job_read', [0, ...(await enqueue(n))]],
  job_list: async (n) => {
    await enqueue(n)
    return ['job_list', [Number.MAX_SAFE_INTEGER, n, 'falckd']]
  },
  'lane_maintain: retention': async (n) => {
    const held = await take(n)
    await run(...turn(-1, [0, 1, 0], keptArgs(held, -1)))
    return ['lane_maintain', [n]]
  },
  'lane_maintain: due jobs': async (n) => {
    const ids = await enqueue(n, `0 ${Date.now() + HOUR}   `)
    const due = await redis.zrange(keys.key('scheduled'), 0, -1)
    await redis.zadd(
      keys.key('scheduled'),
      ...due.filter((member) => ids.includes(member.slice(member.indexOf(':') + 1))).flatMap((member) => [1, member]),
    )
    return ['lane_maintain', [1]]
  },
  lane_bury: async (n) => {
    await enqueue(n, `0   ${Date.now() - 1000} `)
    return ['lane_bury', [n, '', '{"code":"DEADLINE_EXCEEDED"}']]
  },
}

/** How many the store sends at most in one call. */
const LARGEST = {
  'job_enqueue: plain': () => fitting(BATCH.enqueueJobs),
  'job_enqueue: priority, delay, deadline, key': () => fitting(BATCH.enqueueJobs),
  'job_turn: claims': () => BATCH.claimJobs,
  'job_turn: claims from priorities': () => BATCH.claimJobs,
  'job_turn: completions not kept, claims': () => BATCH.settlements,
  'job_turn: completions kept, claims': () => fitting(BATCH.settlements),
  'job_turn: retries': () => BATCH.otherSettlements,
  'job_turn: dead': () => BATCH.otherSettlements,
  lease_renew: () => BATCH.leases,
  job_note: () => fitting(BATCH.notes),
  // As note.ts reckons a log that is full.
  'job_note: a line to each log of 100': () => Math.floor(BATCH.bytes / (100 * (150 + 40))),
  job_states: () => BATCH.leases,
  'lease_reap: decisions': () => BATCH.otherSettlements,
  'lease_reap: names': () => BATCH.reads,
  lease_find: () => BATCH.leases,
  'job_cancel: waiting': () => BATCH.moves,
  'job_cancel: by force': () => BATCH.moves,
  job_promote: () => BATCH.moves,
  'job_read: values': () => BATCH.values,
  'job_read: no values': () => BATCH.reads,
  job_list: () => BATCH.reads,
  'lane_maintain: retention': () => BATCH.settlements,
  'lane_maintain: due jobs': () => 500,
  lane_bury: () => BATCH.buried,
}

const fitting = (count) => Math.min(count, Math.floor(BATCH.bytes / bytes))

async function reset() {
  await redis.flushall()
  for (const { source } of Object.values(scripts)) await redis.script('LOAD', source)
  await enqueue(10_000)
}

async function timeOf(name, count) {
  const times = []
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round % 5 === 0) await reset()
    times.push(await timed(...(await CASES[name](count))))
  }
  return (quartile(times) / 1000).toFixed(2)
}

async function measure() {
  for (const [label, size] of Object.entries(PAYLOADS)) {
    const columns = [...SIZES, 'largest batch']
    console.log(`\nPayload ${label}, milliseconds on the server:\n`)
    console.log(`| script | ${columns.join(' | ')} |\n|---|${columns.map(() => '--:').join('|')}|`)
    bytes = size
    for (const name of Object.keys(CASES).filter((each) => PATTERN.test(each))) {
      const cells = []
      for (const count of SIZES) cells.push(await timeOf(name, count))
      const largest = LARGEST[name]()
      cells.push(`**${await timeOf(name, largest)}** (${largest})`)
      console.log(`| ${name} | ${cells.join(' | ')} |`)
    }
  }
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
const socket = join(folder, 'redis.sock')
const settings = {
  port: 0,
  unixsocket: socket,
  dir: folder,
  save: '',
  'slowlog-log-slower-than': 0,
  'slowlog-max-len': 100,
}
const server = spawn(
  'redis-server',
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
  { stdio: 'ignore' },
)
process.once('exit', () => server.kill())
process.once('SIGTERM', () => process.exit(1))
try {
  redis = new Redis({ path: socket, retryStrategy: () => 50, protocol: 2 })
  redis.on('error', () => {})
  await measure()
} finally {
  redis.disconnect()
  server.kill()
  rmSync(folder, { recursive: true, force: true })
}
