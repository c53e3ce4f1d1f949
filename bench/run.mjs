// Runs one scenario on one store, beside a peer when asked, in turn (A B A B …) on the same Node, and prints one JSON object.
//   npm run bench -- --store sqlite --scenario process --concurrency 100 --json
//   npm run bench -- --store redis --scenario process --peer bullmq --json
// Redis is a private server without persistence unless --fsync or --url says otherwise; it is emptied before every side.
// `--only peer` measures the peer alone. Every side proves that it did every job: a scenario throws when its counter is wrong.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Server } from './server.mjs'
import { installPeers } from './setup.mjs'
import { extraRatios, sideSummary, summary } from './summary.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const EVERYWHERE = [
  'process',
  'enqueue-one',
  'enqueue-concurrent',
  'enqueue-bulk',
  'threads',
  'latency',
  'memory',
  'backlog',
]
const STORES = {
  memory: EVERYWHERE,
  sqlite: EVERYWHERE,
  redis: [...EVERYWHERE, 'idle', 'processes'],
}
const QUEUES = ['bullmq', 'bee-queue']
const BARE = { sqlite: ['enqueue-one'], memory: ['threads'] }

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'memory' },
    scenario: { type: 'string', default: 'process' },
    concurrency: { type: 'string' },
    jobs: { type: 'string' },
    payload: { type: 'string', default: '100' },
    runs: { type: 'string' },
    processes: { type: 'string' },
    keep: { type: 'string', default: '0' },
    peer: { type: 'string' },
    only: { type: 'string' },
    folder: { type: 'string' },
    fsync: { type: 'string' },
    url: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

function usage(problem) {
  console.error(`bench: ${problem}`)
  process.exit(2)
}

function peerExists() {
  if (values.peer === 'bare') return BARE[values.store]?.includes(values.scenario) === true
  return values.store === 'redis' && QUEUES.includes(values.peer) && values.scenario !== 'threads'
}

if (!Object.hasOwn(STORES, values.store)) usage(`--store is one of ${Object.keys(STORES).join(', ')}`)
if (!STORES[values.store].includes(values.scenario)) usage(`--scenario is one of ${STORES[values.store].join(', ')}`)
if (values.peer !== undefined && !peerExists()) {
  usage(`no peer '${values.peer}' for ${values.scenario} on ${values.store}`)
}
if (values.only !== undefined && (values.only !== 'peer' || values.peer === undefined)) {
  usage('--only peer needs --peer')
}
if (values.store !== 'redis' && (values.fsync ?? values.url) !== undefined) usage('--fsync and --url are for redis')
if (values.fsync !== undefined && (!['always', 'everysec', 'no'].includes(values.fsync) || values.url !== undefined)) {
  usage('--fsync is always, everysec or no, without --url')
}
if (values.store === 'redis') {
  // The server keeps nothing on disk here, and our warning about that would be written by every client.
  process.env.HOLDFAST_LOG ??= 'error'
}

// So that what a run started ends with it: the server and the folders go when the process exits.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

async function loadPeer() {
  if (values.peer === undefined) return null
  if (values.peer === 'bare') return import(`./peer/bare-${values.scenario}.mjs`)
  installPeers()
  const { sideOf } = await import('./peer/queue.mjs')
  return sideOf(await import(`./queue/${values.peer}.mjs`), values.scenario)
}

const scenario = await import(`./scenario/${values.scenario}.mjs`)
const concurrency = Number(values.concurrency ?? scenario.defaults.concurrency)
const defaultJobs = scenario.defaults.jobs[values.store]
const options = {
  store: values.store,
  concurrency,
  jobs: Number(values.jobs ?? (typeof defaultJobs === 'function' ? defaultJobs(concurrency) : defaultJobs)),
  payloadBytes: Number(values.payload),
  processes: Number(values.processes ?? scenario.defaults.processes ?? 1),
  keepCompleted: values.keep === '0' ? 0 : values.keep,
}
const wantedRuns = Number(values.runs ?? scenario.defaults.runs ?? 5)
for (const [name, value] of [...Object.entries(options), ['runs', wantedRuns]]) {
  if (typeof value === 'number' && name !== 'keepCompleted' && (!Number.isInteger(value) || value < 1)) {
    usage(`--${name} is a whole number above 0`)
  }
}
const peer = await loadPeer()

// A real folder beside the project unless told otherwise: /tmp may be memory.
const newFolder = () => mkdtempSync(join(values.folder ?? root, '.bench-'))
const serverFolder = values.store === 'redis' ? newFolder() : null
process.once('exit', () => {
  if (serverFolder !== null) rmSync(serverFolder, { recursive: true, force: true })
})
const server =
  serverFolder === null ? null : await Server.open({ url: values.url, fsync: values.fsync, folder: serverFolder })

async function measureOnRedis(side) {
  await server.clear()
  return side.run({ ...options, server, url: server.url })
}

async function measureOnFile(side) {
  const folder = newFolder()
  try {
    return await side.run({
      ...options,
      folder,
      url: values.store === 'memory' ? 'memory:' : `sqlite:${join(folder, 'jobs.db')}`,
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A side answers a number, or `{ value, extra }`. */
async function measure(side) {
  const result = await (server === null ? measureOnFile(side) : measureOnRedis(side))
  return typeof result === 'number' ? { value: result, extra: {} } : result
}

const ours = []
const theirs = []
const sides = [
  ...(values.only === 'peer' ? [] : [{ side: scenario, results: ours }]),
  ...(peer === null ? [] : [{ side: peer, results: theirs }]),
]
if (scenario.defaults.warmUp !== false) for (const { side } of sides) await measure(side)
for (let run = 0; run < wantedRuns; run += 1) {
  for (const { side, results } of sides) results.push(await measure(side))
}

const git = (...args) => {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

function ratioReport() {
  if (ours.length === 0) return {}
  const higherIsBetter = scenario.unit.higherIsBetter
  const ratios = ours.map(({ value }, run) => (higherIsBetter ? value / theirs[run].value : theirs[run].value / value))
  const extraRatio = extraRatios(ours, theirs, scenario.extra ?? {})
  return { ratio: summary(ratios).median, ...(Object.keys(extraRatio).length === 0 ? {} : { extraRatio }) }
}

const report = {
  store: values.store,
  scenario: values.scenario,
  concurrency: options.concurrency,
  payloadBytes: options.payloadBytes,
  jobs: options.jobs,
  keepCompleted: options.keepCompleted,
  ...(scenario.defaults.processes === undefined ? {} : { processes: options.processes }),
  unit: scenario.unit.name,
  ...(ours.length === 0 ? {} : { ours: sideSummary(ours) }),
  ...(peer === null
    ? {}
    : {
        peer: { name: peer.name, version: peer.version, settings: peer.settings, ...sideSummary(theirs) },
        ...ratioReport(),
      }),
  ...(scenario.extra === undefined ? {} : { extraUnits: scenario.extra }),
  ...(server === null
    ? {}
    : {
        server: { redis: await server.version(), fsync: values.url === undefined ? (values.fsync ?? 'off') : 'given' },
      }),
  commit: git('rev-parse', '--short', 'HEAD'),
  version: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version,
  node: process.version,
  machine: { cpus: cpus().length, model: cpus()[0]?.model ?? 'unknown', memoryGb: Math.round(totalmem() / 2 ** 30) },
}
await server?.stop()

if (values.json) console.log(JSON.stringify(report))
else {
  const line = (name, { median, min, max, extra = {} }) => {
    const more = Object.entries(extra).map(([key, value]) => `, ${key} ${value.toFixed(1)}`)
    return `${name}: median ${median.toFixed(1)} ${report.unit} (min ${min.toFixed(1)}, max ${max.toFixed(1)}${more.join('')})`
  }
  if (report.ours !== undefined) console.log(line('ours', report.ours))
  if (peer !== null) console.log(line(peer.name, report.peer))
  if (report.ratio !== undefined) console.log(`ratio: ${report.ratio.toFixed(2)}`)
}
