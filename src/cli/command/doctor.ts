/**
 * `holdfast doctor`: looks at what a working installation needs and says what to do about what is wrong. Exit code 1 when a
 * check is `wrong`; a `note` is worth reading but harms nothing.
 */
import { createRequire } from 'node:module'
import { type Command, storeUrl } from '../command.ts'
import { type Check, note, ok, wrong } from '../doctor/check.ts'
import { checkStore } from '../doctor/store.ts'
import type { Style } from '../output.ts'
import { maskStoreUrl } from '../text.ts'

const NODE_MIN = [20, 19] as const
/** No clock of a machine that runs this release is before it. */
const RELEASED_AT = Date.UTC(2026, 0, 1)

const STATUS_STYLE: Readonly<Record<Check['status'], Style>> = { ok: 'green', note: 'yellow', wrong: 'red' }

const NAME_WIDTH = 20

export const doctorCommand: Command = {
  name: 'doctor',
  usage: 'doctor',
  summary: 'check the installation and the store, and say what to do',
  options: {},
  words: [0, 0],
  async run(context) {
    const url = storeUrl(context)
    const checks = [
      checkNode(),
      checkDriver(url.startsWith('sqlite:')),
      checkClock(),
      ...(await checkStore(context, url)),
    ]
    const isOk = checks.every(({ status }) => status !== 'wrong')
    const { output } = context
    output.result({ ok: isOk, url: maskStoreUrl(url), checks }, () => {
      for (const { name, status, found, advice } of checks) {
        output.line({ text: status.padEnd(6), style: STATUS_STYLE[status] }, name.padEnd(NAME_WIDTH), found)
        if (advice !== null) output.line(' '.repeat(NAME_WIDTH + 6), '→ ', advice)
      }
      output.line(isOk ? 'All is in order.' : 'Something is wrong; see the advice above.')
    })
    return isOk ? 0 : 1
  },
}

function checkNode(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const fits = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])
  const found = `${process.version} on ${process.platform} ${process.arch}`
  return fits ? ok('node', found) : wrong('node', found, `install Node ${NODE_MIN.join('.')} or later`)
}

function checkDriver(isNeeded: boolean): Check {
  try {
    const manifest = createRequire(import.meta.url)('better-sqlite3/package.json') as { readonly version?: unknown }
    return ok('sqlite driver', `better-sqlite3 ${String(manifest.version)}`)
  } catch {
    const make = isNeeded ? wrong : note
    return make(
      'sqlite driver',
      'better-sqlite3 is not installed',
      'for sqlite: stores run npm install better-sqlite3@12',
    )
  }
}

function checkClock(): Check {
  const now = new Date()
  const found = now.toISOString()
  return now.getTime() > RELEASED_AT ? ok('clock', found) : wrong('clock', found, 'set the clock of this machine')
}
