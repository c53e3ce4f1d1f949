// What a run may be told on the command line: the options, and which scenario and which peer there is on which store.
import { parseArgs } from 'node:util'

const EVERYWHERE = [
  'process',
  'enqueue-one',
  'enqueue-concurrent',
  'enqueue-bulk',
  'threads',
  'threads-noop',
  'latency',
  'memory',
  'backlog',
]

export const STORES = {
  memory: EVERYWHERE,
  sqlite: [...EVERYWHERE, 'transactional'],
  redis: [...EVERYWHERE, 'idle', 'processes'],
  postgres: [...EVERYWHERE, 'processes', 'transactional', 'steady', 'held-xmin', 'notify'],
}

const EMBEDDED = ['process', 'enqueue-one', 'enqueue-concurrent', 'enqueue-bulk']
const ON_REDIS = [...EVERYWHERE.filter((scenario) => !scenario.startsWith('threads')), 'idle', 'processes']
const ON_POSTGRES = [...EMBEDDED, 'latency', 'memory', 'backlog', 'processes', 'steady', 'held-xmin']

/** Of each store the scenarios of each peer. */
export const PEERS = {
  memory: { bare: ['threads', 'threads-noop'] },
  sqlite: { bare: ['enqueue-one', 'transactional'], plainjob: EMBEDDED, 'plainjob-defaults': EMBEDDED },
  redis: {
    bare: ['enqueue-one'],
    bullmq: [...ON_REDIS, 'threads-noop'],
    'bullmq-processes': ['threads-noop'],
    'bee-queue': ON_REDIS,
  },
  postgres: {
    bare: ['transactional'],
    'graphile-worker': ON_POSTGRES,
    'graphile-worker-defaults': ON_POSTGRES,
    'pg-boss': ON_POSTGRES,
  },
}

const FSYNC = { redis: ['always', 'everysec', 'no'], postgres: ['on', 'off'] }

const OPTIONS = {
  store: { type: 'string', default: 'memory' },
  scenario: { type: 'string', default: 'process' },
  concurrency: { type: 'string' },
  jobs: { type: 'string' },
  payload: { type: 'string', default: '100' },
  runs: { type: 'string' },
  processes: { type: 'string' },
  minutes: { type: 'string' },
  seconds: { type: 'string' },
  rate: { type: 'string' },
  dead: { type: 'string' },
  keep: { type: 'string', default: '0' },
  peer: { type: 'string' },
  only: { type: 'string' },
  folder: { type: 'string' },
  fsync: { type: 'string' },
  url: { type: 'string' },
  json: { type: 'boolean', default: false },
}

export function usage(problem) {
  console.error(`bench: ${problem}`)
  process.exit(2)
}

const among = (names) => names.join(', ')

function checkServer({ store, fsync, url }) {
  const known = FSYNC[store]
  if (known === undefined) {
    if ((fsync ?? url) !== undefined) usage(`--fsync and --url are for ${among(Object.keys(FSYNC))}`)
    return
  }
  if (fsync === undefined) return
  if (!known.includes(fsync) || url !== undefined) usage(`--fsync is one of ${among(known)}, without --url`)
}

/** The options of the command line; ends the process with a line about them when they make no sense. */
export function readOptions() {
  const { values } = parseArgs({ options: OPTIONS })
  const { store, scenario, peer, only } = values
  if (!Object.hasOwn(STORES, store)) usage(`--store is one of ${among(Object.keys(STORES))}`)
  if (!STORES[store].includes(scenario)) usage(`--scenario is one of ${among(STORES[store])}`)
  if (peer !== undefined && PEERS[store][peer]?.includes(scenario) !== true) {
    usage(`no peer '${peer}' for ${scenario} on ${store}`)
  }
  if (only !== undefined && (only !== 'peer' || peer === undefined)) usage('--only peer needs --peer')
  checkServer(values)
  return values
}

/** How many jobs, the same for both sides: a slow peer has a say. Scenarios that last for a time have no number. */
function jobsOf(values, defaults, { concurrency, peer }) {
  if (defaults.jobs === undefined) return {}
  const ofStore = defaults.jobs[values.store]
  const usual = typeof ofStore === 'function' ? ofStore(concurrency) : ofStore
  return { jobs: Number(values.jobs ?? Math.min(usual, peer?.jobs?.[values.scenario] ?? usual)) }
}

/** What a scenario is run with: what was asked for, else its own or its peer's defaults. */
export function runOptions(values, { defaults }, peer) {
  const concurrency = Number(values.concurrency ?? defaults.concurrency)
  const options = {
    store: values.store,
    scenario: values.scenario,
    concurrency,
    payloadBytes: Number(values.payload),
    ...jobsOf(values, defaults, { concurrency, peer }),
    keepCompleted: values.keep === '0' ? 0 : values.keep,
  }
  for (const name of ['processes', 'minutes', 'seconds', 'rate', 'dead']) {
    const wanted = values[name] ?? defaults[name]
    if (wanted !== undefined) options[name] = Number(wanted)
  }
  const runs = Number(values.runs ?? defaults.runs ?? 5)
  for (const [name, value] of [...Object.entries(options), ['runs', runs]]) {
    if (typeof value !== 'number' || name === 'keepCompleted') continue
    if (!Number.isInteger(value) || value < 1) usage(`--${name} is a whole number above 0`)
  }
  return { options, runs }
}
