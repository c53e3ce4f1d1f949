// Runs one scenario on one store, beside a peer when asked, in turn (A B A B …) on the same Node, and prints one JSON object.
//   npm run bench -- --store sqlite --scenario process --concurrency 100 --json
//   npm run bench -- --store sqlite --scenario enqueue-one --peer bare --json
// Every side proves that it did every job: a scenario throws when its counter is wrong.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const SCENARIOS = [
  'process',
  'enqueue-one',
  'enqueue-concurrent',
  'enqueue-bulk',
  'threads',
  'latency',
  'memory',
  'backlog',
]
const STORES = ['memory', 'sqlite']
const PEERS = { bare: { sqlite: ['enqueue-one'], memory: ['threads'] } }

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'memory' },
    scenario: { type: 'string', default: 'process' },
    concurrency: { type: 'string' },
    jobs: { type: 'string' },
    payload: { type: 'string', default: '100' },
    runs: { type: 'string', default: '5' },
    keep: { type: 'string', default: '0' },
    peer: { type: 'string' },
    folder: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

function usage(problem) {
  console.error(`bench: ${problem}`)
  process.exit(2)
}

if (!SCENARIOS.includes(values.scenario)) usage(`--scenario is one of ${SCENARIOS.join(', ')}`)
if (!STORES.includes(values.store)) usage(`--store is one of ${STORES.join(', ')}`)
if (values.peer !== undefined && !PEERS[values.peer]?.[values.store]?.includes(values.scenario)) {
  usage(`no peer '${values.peer}' for ${values.scenario} on ${values.store}`)
}

const scenario = await import(`./scenario/${values.scenario}.mjs`)
const peer = values.peer === undefined ? null : await import(`./peer/${values.peer}-${values.scenario}.mjs`)
const options = {
  store: values.store,
  concurrency: Number(values.concurrency ?? scenario.defaults.concurrency),
  jobs: Number(values.jobs ?? scenario.defaults.jobs[values.store]),
  payloadBytes: Number(values.payload),
  keepCompleted: values.keep === '0' ? 0 : values.keep,
}
for (const name of ['concurrency', 'jobs', 'payloadBytes']) {
  if (!Number.isInteger(options[name]) || options[name] < 1) usage(`--${name} is a whole number above 0`)
}

async function measure(side) {
  // A real file beside the project unless told otherwise: /tmp may be memory.
  const folder = mkdtempSync(join(values.folder ?? root, '.bench-'))
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

function summary(runs) {
  const sorted = [...runs].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const median = sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2
  return { median, min: sorted[0], max: sorted.at(-1), runs }
}

const ours = []
const theirs = []
const ratios = []
await measure(scenario)
if (peer !== null) await measure(peer)
for (let run = 0; run < Number(values.runs); run += 1) {
  ours.push(await measure(scenario))
  if (peer === null) continue
  theirs.push(await measure(peer))
  ratios.push(scenario.unit.higherIsBetter ? ours.at(-1) / theirs.at(-1) : theirs.at(-1) / ours.at(-1))
}

const git = (...args) => {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}
const report = {
  store: values.store,
  scenario: values.scenario,
  concurrency: options.concurrency,
  payloadBytes: options.payloadBytes,
  jobs: options.jobs,
  keepCompleted: options.keepCompleted,
  unit: scenario.unit.name,
  ours: summary(ours),
  ...(peer === null
    ? {}
    : {
        peer: { name: peer.name, version: peer.version, settings: peer.settings, ...summary(theirs) },
        ratio: summary(ratios).median,
      }),
  commit: git('rev-parse', '--short', 'HEAD'),
  version: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version,
  node: process.version,
  machine: { cpus: cpus().length, model: cpus()[0]?.model ?? 'unknown', memoryGb: Math.round(totalmem() / 2 ** 30) },
}

if (values.json) console.log(JSON.stringify(report))
else {
  const line = (name, { median, min, max }) =>
    `${name}: median ${median.toFixed(1)} ${report.unit} (min ${min.toFixed(1)}, max ${max.toFixed(1)})`
  console.log(line('ours', report.ours))
  if (peer !== null) {
    console.log(line(peer.name, report.peer))
    console.log(`ratio: ${report.ratio.toFixed(2)}`)
  }
}
