/**
 * `holdfast doctor`: looks at what a working installation needs and says what to do about what is wrong. Exit code 1 when a
 * check is `wrong`; a `note` is worth reading but harms nothing. The trial job that proves writing leaves nothing behind.
 */
import { createRequire } from 'node:module'
import { type Health, type Holdfast, isHoldfastError } from '../../index.ts'
import { type Command, type CommandContext, existingOnly, OpenError, openStore, storeUrl } from '../command.ts'
import { describeError } from '../failure.ts'
import type { Style } from '../output.ts'
import { maskStoreUrl, showBytes, showNumber, showSpan } from '../text.ts'

const NODE_MIN = [20, 19] as const
const EXPIRED_LONG_MS = 60_000
const CLOCK_BACK_MS = 60_000
const PAGES_MAX = 20
/** No clock of a machine that runs this release is before it. */
const RELEASED_AT = Date.UTC(2026, 0, 1)

interface Check {
  readonly name: string
  readonly status: 'ok' | 'note' | 'wrong'
  readonly found: string
  /** null: nothing to do. */
  readonly advice: string | null
}

const ok = (name: string, found: string): Check => ({ name, status: 'ok', found, advice: null })
const note = (name: string, found: string, advice: string): Check => ({ name, status: 'note', found, advice })
const wrong = (name: string, found: string, advice: string): Check => ({ name, status: 'wrong', found, advice })

const STATUS_STYLE: Readonly<Record<Check['status'], Style>> = { ok: 'green', note: 'yellow', wrong: 'red' }

const NAME_WIDTH = 17

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

const DURABILITY_ADVICE: Readonly<Record<string, string>> = {
  none: 'jobs do not outlive the store: with Redis set appendonly yes, appendfsync always and maxmemory-policy noeviction; or use sqlite:PATH',
  everysec: 'a crash of the server may lose its last second or two; appendfsync always loses nothing',
}

function checkDurability({ capabilities: { durability } }: Holdfast): Check {
  const advice = DURABILITY_ADVICE[durability]
  return advice === undefined ? ok('durability', durability) : note('durability', durability, advice)
}

function checkClock(): Check {
  const now = new Date()
  const found = now.toISOString()
  return now.getTime() > RELEASED_AT ? ok('clock', found) : wrong('clock', found, 'set the clock of this machine')
}

function openAdvice(url: string, cause: unknown): string {
  if (!url.startsWith('redis') && !url.startsWith('rediss'))
    return 'mend the path, the rights or the file, or restore a backup'
  const code = isHoldfastError(cause) ? cause.code : ''
  if (code === 'STORE_FULL') return 'raise maxmemory, or let workers that are running drain the server'
  if (code === 'UNSUPPORTED' || code === 'STORE_SCHEMA_TOO_NEW') return 'do what the message says'
  if (code === 'STORE_DENIED') return 'mend the user or password, or grant what docs/keyspace.md lists'
  return 'start the server, or mend the host, port or TLS of the URL'
}

async function checkStore(context: CommandContext, url: string): Promise<readonly Check[]> {
  let store: Holdfast
  try {
    store = await openStore(context, existingOnly(url), { keepCancelled: 0 })
  } catch (error) {
    const cause = error instanceof OpenError ? error.cause : error
    if (isHoldfastError(cause) && (cause.code === 'INVALID_URL' || cause.code === 'INVALID_NAME')) throw error
    return [wrong('store opens', describeError(error).line, openAdvice(url, cause))]
  }
  try {
    const health = await store.health()
    return [
      checkHealth(health),
      checkDurability(store),
      ...checkDetails(health.store.details),
      await attempt('writable', () => checkWritable(store)),
      await attempt('leases', () => checkLeases(store)),
      await attempt('newest job', () => checkNewest(store)),
      await attempt('dead letters', () => checkDeadLetters(store)),
    ]
  } finally {
    await store.close()
  }
}

async function attempt(name: string, check: () => Promise<Check>): Promise<Check> {
  try {
    return await check()
  } catch (error) {
    return wrong(name, describeError(error).line, 'mend the store; the message says what it refuses')
  }
}

function checkHealth({ store }: Health): Check {
  if (store.ok) return ok('store opens', `${store.name}, answers in ${showSpan(store.latencyMs ?? 0)}`)
  return wrong('store opens', store.error ?? 'it does not answer', 'see the message; the store must answer first')
}

/** What the store tells of itself; names and values that are known to be bad are judged, the rest is shown. */
function checkDetails(details: Health['store']['details']): readonly Check[] {
  return Object.entries(details).map(([name, value]) => {
    const text = /bytes$/i.test(name) && typeof value === 'number' ? showBytes(value) : maskStoreUrl(String(value))
    const low = text.toLowerCase()
    if (name === 'journalMode' && low !== 'wal' && low !== 'memory')
      return wrong(name, text, 'the journal must be WAL; open the file once with a process that may write it')
    if (name === 'synchronous' && !['full', 'extra', '2', '3'].includes(low))
      return wrong(name, text, 'commits would not survive a power cut; synchronous must be FULL')
    if (/integrity|quickCheck/i.test(name) && low !== 'ok' && low !== 'true')
      return wrong(name, text, 'the file is damaged: stop all writers, then restore a backup')
    return ok(name, text)
  })
}

/** A job that nobody can claim is stored, cancelled and so removed; with `keepCancelled: 0` nothing of it is left. */
async function checkWritable(store: Holdfast): Promise<Check> {
  const trial = await store.enqueue('holdfast.doctor', null, { queue: 'holdfast.doctor', delay: '1d' })
  await store.cancel(trial.id)
  return ok('writable', 'a trial job was stored and removed')
}

async function checkLeases(store: Holdfast): Promise<Check> {
  let running = 0
  let expired = 0
  let longestMs = 0
  let cursor: string | null = null
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const found: Awaited<ReturnType<Holdfast['list']>> = await store.list({ state: 'running', limit: 500, cursor })
    running += found.jobs.length
    for (const { leaseExpiresAt } of found.jobs) {
      const overMs = Date.now() - (leaseExpiresAt ?? Number.POSITIVE_INFINITY)
      if (overMs <= 0) continue
      expired += 1
      longestMs = Math.max(longestMs, overMs)
    }
    cursor = found.cursor
    if (cursor === null) break
  }
  const found = `${showNumber(running)} running, ${showNumber(expired)} with an expired lease`
  if (expired === 0) return ok('leases', found)
  const advice = 'their workers died and no other took them back: start a worker, or run holdfast maintain'
  const text = `${found}, the oldest since ${showSpan(longestMs)}`
  return longestMs > EXPIRED_LONG_MS ? wrong('leases', text, advice) : note('leases', text, advice)
}

async function checkNewest(store: Holdfast): Promise<Check> {
  const [newest] = (await store.list({ limit: 1 })).jobs
  if (newest === undefined) return ok('newest job', 'none')
  const aheadMs = newest.createdAt - Date.now()
  const found = new Date(newest.createdAt).toISOString()
  if (aheadMs <= CLOCK_BACK_MS) return ok('newest job', found)
  return wrong('newest job', `${found}, ${showSpan(aheadMs)} ahead of this clock`, 'a clock was set back; compare them')
}

async function checkDeadLetters(store: Holdfast): Promise<Check> {
  const { counts } = await store.stats()
  if (counts.dlq === 0) return ok('dead letters', 'none')
  const advice = 'look at them with holdfast dlq, mend the cause, then holdfast replay ID'
  return note('dead letters', showNumber(counts.dlq), advice)
}
