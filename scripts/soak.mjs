// Every store for an hour under random faults: `npm run soak -- [--minutes 60] [--store memory|sqlite|postgres|redis] [--seed N]`.
// The test run does the same for three minutes; this is that test, longer.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, store: { type: 'string' }, seed: { type: 'string' } },
})
const seconds = Number(values.minutes) * 60
if (!(seconds >= 60)) {
  console.error('--minutes: expected a number of at least 1')
  process.exit(2)
}
const env = { ...process.env, HOLDFAST_SOAK_SECONDS: String(seconds) }
if (values.store !== undefined) env.HOLDFAST_SOAK_STORE = values.store
if (values.seed !== undefined) env.HOLDFAST_CHAOS_SEED = values.seed
const test = fileURLToPath(new URL('test.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [test, 'test/chaos/soak.test.ts'], { stdio: 'inherit', env })
process.exit(status ?? 1)
