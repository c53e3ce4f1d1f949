// What the number of messages in one SQLite transaction is worth: single enqueues, 256 and 16 in flight, with the thread's group limit
// set to 1, 8, 64 and 256 in copies of the built thread. Needs a build: `node bench/decision/sqlite-group.mjs`.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const LIMITS = [1, 8, 64, 256]
const ROUNDS = 3
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

function copyWithLimit(folder, limit) {
  const dist = join(folder, `limit-${limit}`)
  cpSync(join(root, 'dist'), dist, { recursive: true })
  const file = join(dist, 'workers', 'sqlite-store.js')
  const text = readFileSync(file, 'utf8')
  const changed = text.replace(/const GROUP_MAX = \d+/, `const GROUP_MAX = ${limit}`)
  if (!/const GROUP_MAX = \d+/.test(text)) throw new Error('the group limit is not where it was')
  writeFileSync(file, changed)
  return dist
}

async function rate(dist, path, inFlight) {
  // The backend itself, so that nothing is merged before the thread.
  const { SqliteBackend } = await import(`${dist}/src/backends/sqlite/backend.js`)
  const { systemClock } = await import(`${dist}/src/clock.js`)
  const { systemRandom, createUlidFactory } = await import(`${dist}/src/random.js`)
  const ulid = createUlidFactory(systemClock, systemRandom)
  const platform = { clock: systemClock, random: systemRandom, warn: () => {}, openDeadlineMs: 10_000 }
  const backend = await SqliteBackend.open({ ...platform, path, namespace: 'bench' })
  const job = () => ({
    ...{
      id: `default/${ulid()}`,
      type: 'noop',
      lane: 'default',
      payload: `"${'x'.repeat(98)}"`,
      priority: 0,
      runAt: null,
    },
    ...{
      delayMs: 0,
      deadlineAt: null,
      timeoutMs: null,
      maxAttempts: 7,
      maxAttemptsFixed: false,
      retry: null,
      maxCrashes: 3,
    },
    ...{ idempotencyKey: null, metadata: null, traceId: null, keepResultMs: null, replayOf: null },
  })
  const total = inFlight * 20
  let next = 0
  const caller = async () => {
    while (next < total) {
      next += 1
      await backend.call('job.enqueue', { jobs: [job()] })
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: inFlight }, caller))
  const elapsed = performance.now() - startedAt
  await backend.close()
  return (total / elapsed) * 1_000
}

const folder = mkdtempSync(join(root, '.bench-'))
try {
  const dists = new Map(LIMITS.map((limit) => [limit, copyWithLimit(folder, limit)]))
  for (const inFlight of [16, 256]) {
    const rates = new Map(LIMITS.map((limit) => [limit, []]))
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const limit of LIMITS)
        rates.get(limit).push(await rate(dists.get(limit), join(folder, `${inFlight}-${limit}-${round}.db`), inFlight))
    }
    for (const [limit, values] of rates)
      console.log(`${inFlight} in flight, at most ${limit} a transaction: ${Math.round(median(values))} enqueues/s`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
