// Runs one scenario on one store, beside a peer when asked, in turn (A B A B …) on the same Node, and prints one JSON object.
//   npm run bench -- --store sqlite --scenario process --concurrency 100 --json
//   npm run bench -- --store postgres --scenario process --peer graphile-worker --json
// Redis and PostgreSQL are private servers (Redis without persistence, PostgreSQL with its defaults) unless --fsync or --url says
// otherwise; they are emptied before every side. Every side proves that it did every job: a scenario throws when its counter is wrong.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { needsNewerNode, runOnNewerNode } from './node.mjs'
import { readOptions, runOptions } from './options.mjs'
import { installPeers } from './setup.mjs'
import { extraRatios, sideSummary, summary } from './summary.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const values = readOptions()
if (needsNewerNode(values.peer)) await runOnNewerNode()
if (values.store === 'redis') {
  // The server keeps nothing on disk here, and our warning about that would be written by every client.
  process.env.HOLDFAST_LOG ??= 'error'
}

// So that what a run started ends with it: the server and the folders go when the process exits.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

async function loadPeer() {
  if (values.peer === undefined) return null
  if (values.peer === 'bare')
    return import(`./peer/bare-${values.store === 'redis' ? 'redis-' : ''}${values.scenario}.mjs`)
  installPeers()
  const { sideOf } = await import('./peer/queue.mjs')
  return sideOf(await import(`./queue/${values.peer}.mjs`), values.scenario)
}

const scenario = await import(`./scenario/${values.scenario}.mjs`)
const peer = await loadPeer()
const { options, runs: wantedRuns } = runOptions(values, scenario, peer)

// A real folder beside the project unless told otherwise: /tmp may be memory.
const newFolder = () => mkdtempSync(join(values.folder ?? root, '.bench-'))

const SERVERS = {
  redis: async () => (await import('./server.mjs')).Server,
  postgres: async () => (await import('./postgres.mjs')).PostgresServer,
}

async function openServer() {
  const load = SERVERS[values.store]
  if (load === undefined) return null
  const folder = newFolder()
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return (await load()).open({ url: values.url, fsync: values.fsync, folder })
}

const server = await openServer()

async function measureOnServer(side) {
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

/** A side answers a number, or `{ value, extra, detail }`. */
async function measure(side) {
  const result = await (server === null ? measureOnFile(side) : measureOnServer(side))
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
  ...options,
  unit: scenario.unit.name,
  ...(ours.length === 0 ? {} : { ours: sideSummary(ours) }),
  ...(peer === null
    ? {}
    : {
        peer: { name: peer.name, version: peer.version, settings: peer.settings, ...sideSummary(theirs) },
        ...ratioReport(),
      }),
  ...(scenario.extra === undefined ? {} : { extraUnits: scenario.extra }),
  ...(server === null ? {} : { server: await server.describe() }),
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
