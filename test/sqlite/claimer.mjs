// One process of `process.test.ts`: claims and completes until nothing is left, then prints the ids it was given.
import { pathToFileURL } from 'node:url'

const [, , dist, path, workerId] = process.argv
const load = (file) => import(pathToFileURL(`${dist}/src/${file}`).href)
const { SqliteBackend } = await load('backends/sqlite/backend.js')
const { systemClock } = await load('clock.js')
const { nonce, systemRandom } = await load('random.js')

const platform = { clock: systemClock, random: systemRandom, warn: () => {}, openDeadlineMs: 10_000 }
const backend = await SqliteBackend.open({ ...platform, path, namespace: 'test' })
const claimed = []
let settlements = []
for (;;) {
  const claim = { workerId, nonce: nonce(systemRandom), lanes: ['mail'], limit: 7, leaseMs: 60_000, keepDeadMs: null }
  const { verdicts, grants } = await backend.call('job.turn', { settlements, claims: [claim], resend: false })
  if (verdicts.some((verdict) => verdict !== 'applied')) throw new Error(`verdicts: ${verdicts.join()}`)
  const jobs = grants[0]?.jobs ?? []
  if (jobs.length === 0) break
  claimed.push(...jobs.map(({ id }) => id))
  settlements = jobs.map(({ id, token }) => ({
    kind: 'complete',
    id,
    token,
    durationMs: 0,
    keepMs: null,
    output: null,
    keepOutputMs: null,
  }))
}
await backend.close()
process.stdout.write(JSON.stringify(claimed))
