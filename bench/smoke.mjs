// Runs every scenario on every store, with every peer, on a few jobs: that none of the runners has rotted. Figures mean nothing here.
//   node bench/smoke.mjs [PATTERN]      such as  node bench/smoke.mjs 'postgres .* graphile'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { PEERS, STORES } from './options.mjs'

const run = fileURLToPath(new URL('./run.mjs', import.meta.url))
const pattern = new RegExp(process.argv[2] ?? '')
const LIMIT_MS = 300_000
const FEW = ['--jobs', '200', '--runs', '1', '--json']
const SHORT = ['--processes', '2', '--minutes', '1', '--seconds', '3', '--dead', '5000']

function combinations() {
  return Object.entries(STORES).flatMap(([store, scenarios]) =>
    scenarios.flatMap((scenario) => {
      const peers = Object.keys(PEERS[store]).filter((peer) => PEERS[store][peer].includes(scenario))
      return [undefined, ...peers].map((peer) => ({ store, scenario, peer }))
    }),
  )
}

const nameOf = ({ store, scenario, peer }) => [store, scenario, peer ?? 'alone'].join(' ')

/** Null when it went well, else what is wrong. */
function problemOf({ store, scenario, peer }) {
  const sides = peer === undefined ? [] : ['--peer', peer, '--only', 'peer']
  const args = ['--store', store, '--scenario', scenario, ...sides, ...FEW, ...SHORT]
  const { status, stdout, stderr } = spawnSync(process.execPath, [run, ...args], {
    encoding: 'utf8',
    timeout: LIMIT_MS,
  })
  if (status !== 0) return stderr.slice(-600)
  const side = JSON.parse(stdout.trim().split('\n').at(-1))[peer === undefined ? 'ours' : 'peer']
  return Number.isFinite(side?.median) ? null : `no figure: ${stdout}`
}

let failed = 0
for (const each of combinations().filter((one) => pattern.test(nameOf(one)))) {
  const problem = problemOf(each)
  console.log(`${problem === null ? 'ok    ' : 'FAILED'} ${nameOf(each)}`)
  if (problem === null) continue
  failed += 1
  console.error(problem)
}
process.exitCode = failed === 0 ? 0 : 1
