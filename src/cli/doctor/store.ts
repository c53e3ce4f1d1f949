/** What the doctor looks at in a store: how it is reached and set up. The trial job that proves writing leaves nothing behind. */
import { type Health, type Holdfast, isHoldfastError } from '../../index.ts'
import { type CommandContext, existingOnly, OpenError, openStore } from '../command.ts'
import { describeError } from '../failure.ts'
import { maskStoreUrl, showBytes, showSpan } from '../text.ts'
import { type Attempt, type Check, note, ok, wrong } from './check.ts'
import { checkWork, TRIAL_LANE } from './work.ts'

/** Leases and delays go by the store's clock; a time that a producer gives goes by its own. */
const CLOCK_NOTE_MS = 1_000
const CLOCK_WRONG_MS = 60_000

export async function checkStore(context: CommandContext, url: string): Promise<readonly Check[]> {
  let store: Holdfast
  try {
    store = await openStore(context, existingOnly(url), { keepCancelled: 0 })
  } catch (error) {
    const cause = error instanceof OpenError ? error.cause : error
    if (isHoldfastError(cause) && (cause.code === 'INVALID_URL' || cause.code === 'INVALID_NAME')) throw error
    return [wrong('store opens', describeError(error).line, openAdvice(url, cause))]
  }
  try {
    const health = await store.health({ rights: true })
    const now = Date.now() + (health.store.clockAheadMs ?? 0)
    const answers = await Promise.all([
      attempt('writable', () => checkWritable(store)),
      ...checkWork(store, now, attempt),
    ])
    return [
      checkHealth(health),
      ...checkOffset(health),
      checkDurability(store, url),
      ...checkRights(health, url),
      ...checkDetails(health.store.details),
      ...answers,
    ]
  } finally {
    await store.close()
  }
}

function openAdvice(url: string, cause: unknown): string {
  const code = isHoldfastError(cause) ? cause.code : ''
  if (!/^(?:rediss?|postgres(?:ql)?)\b/.test(url)) return 'mend the path, the rights or the file, or restore a backup'
  if (code === 'STORE_FULL') return 'give the server more room, or let workers that are running drain it'
  if (code === 'UNSUPPORTED' || code === 'STORE_SCHEMA_TOO_NEW') return 'do what the message says'
  if (code === 'STORE_DENIED') return 'mend the user or password, or grant what the message names (docs/operations.md)'
  return 'start the server, or mend the host, port or TLS of the URL'
}

const attempt: Attempt = async (name, check) => {
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

function checkOffset({ store: { clockAheadMs, latencyMs } }: Health): readonly Check[] {
  if (clockAheadMs === null) return []
  const offMs = Math.abs(clockAheadMs)
  const found =
    offMs <= Math.max(50, latencyMs ?? 0)
      ? 'the same as here'
      : `${showSpan(offMs)} ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this machine`
  const advice = 'run a time service on both: run times and deadlines that producers give are by their clocks'
  if (offMs >= CLOCK_WRONG_MS) return [wrong('clock of the store', found, advice)]
  return [offMs >= CLOCK_NOTE_MS ? note('clock of the store', found, advice) : ok('clock of the store', found)]
}

/** What to say of a server that has no disk. */
export const NOTHING_KEPT =
  'jobs do not outlive the server: on Redis set appendonly yes, appendfsync always and maxmemory-policy noeviction'

/** Whoever opens a store without a file has asked for one that keeps nothing; a server that keeps nothing is a mistake. */
function checkDurability({ capabilities: { durability } }: Holdfast, url: string): Check {
  switch (durability) {
    case 'none':
      return /memory/.test(url) && !/^(?:redis|postgres)/.test(url)
        ? note('durability', durability, 'jobs do not outlive this process; sqlite:PATH keeps them')
        : wrong('durability', durability, NOTHING_KEPT)
    case 'process':
      return wrong('durability', durability, 'a crash of the machine may destroy the database: set fsync = on')
    case 'everysec':
      return note(
        'durability',
        durability,
        'a crash of the server may lose its last second or two; appendfsync always (Redis) or synchronous_commit = on (PostgreSQL) loses nothing',
      )
    default:
      return ok('durability', durability)
  }
}

function checkRights({ store: { details } }: Health, url: string): readonly Check[] {
  const { missingRights } = details
  if (typeof missingRights !== 'string') return []
  if (missingRights === '') return [ok('rights', 'all that are needed')]
  const advice = url.startsWith('redis')
    ? 'ACL SETUSER NAME with these, and the key patterns of docs/keyspace.md'
    : 'GRANT these to the role, or run holdfast migrate --role NAME as the owner'
  return [wrong('rights', `missing: ${missingRights}`, advice)]
}

/** What the store tells of itself; names and values that are known to be bad are judged, the rest is shown. */
function checkDetails({ missingRights: _, ...details }: Health['store']['details']): readonly Check[] {
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
  const trial = await store.enqueue('holdfast.doctor', null, { queue: TRIAL_LANE, delay: '1d' })
  await store.cancel(trial.id)
  return ok('writable', 'a trial job was stored and removed')
}
