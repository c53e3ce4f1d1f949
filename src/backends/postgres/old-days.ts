/**
 * Removes the partitions of the archive whose day is over, without anybody having to wait for it. Records with a key go first, a batch at a
 * time with their keys and counts, as many as fit into the time of a run; then the rest is counted under a lock that lets everybody read, and
 * the table dropped. Where there is too much even to be counted, all records go in batches. What is left goes on in the next run.
 */
import type { Clock } from '../../clock.ts'
import { type HoldfastError, isHoldfastError } from '../../errors.ts'
import type { Warn } from '../../telemetry.ts'
import { sqlStateOf } from './errors.ts'
import type { Link, Prepared } from './link.ts'
import { inSchema } from './statement.ts'

export interface OldDaysTerms {
  /** Records that go in one statement. */
  readonly batch: number
  /** What all batches of one run may take. */
  readonly spendMs: number
  /** What the count may take: less than others wait for a lock, so that those who write to the day meanwhile do not fail. */
  readonly countMs: number
}

const TERMS: OldDaysTerms = { batch: 2_000, spendMs: 1_000, countMs: 1_500 }
/** Records that are looked at for each that may go: few may have a key. */
const LOOKS_EACH = 10
/** Where so many still take too long, the server has other troubles. */
const BATCH_MIN = 50
/** So many runs without any progress are told. */
const IDLE_RUNS_MAX = 10

const once = (text: string): Prepared => ({ name: 'old-days', text, isOnce: true })

/** Whoever waits for the lock of a table makes all others wait behind. */
const PATIENCE = "SET LOCAL lock_timeout = '100ms'"
/**
 * No reader waits behind who waits for the lock of the count, and that one holds nothing. A vacuum of the server's own, which all these
 * dead rows bring about, gives way to who has waited for a second, and to nobody before.
 */
const PATIENCE_TO_COUNT = "SET LOCAL lock_timeout = '1500ms'"
/** Each batch is found by the index of the ids, whatever the planner believes. */
const BY_INDEX = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off'

export interface OldDaysParts {
  readonly link: Link
  readonly schema: string
  readonly clock: Pick<Clock, 'monotonic'>
  readonly warn: Warn
}

/** What is known of a day from one run to the next. */
interface Day {
  readonly day: number
  /** The last id that was looked at: nobody walks twice over what is dead, and not yet vacuumed. */
  after: string
  /** All were looked at. */
  isWalked: boolean
  /** Nothing that is new is found any more, but what others had locked. */
  isFirstWalk: boolean
  /** Too many to be counted: those without a key go in batches too. */
  isWhole: boolean
  batch: number
  idleRuns: number
}

export class OldDays {
  private readonly parts: OldDaysParts
  private readonly terms: OldDaysTerms
  private readonly known = new Map<number, Day>()

  constructor(parts: OldDaysParts, terms: Partial<OldDaysTerms> = {}) {
    this.parts = parts
    this.terms = { ...TERMS, ...terms }
  }

  /**
   * `days`: all that are over. Returns how many records went. Whoever does not own the tables removes what has a key, so that an owner who
   * comes once a day has only to drop.
   */
  async run(days: readonly number[], isOwner: boolean): Promise<number> {
    for (const day of this.known.keys()) if (!days.includes(day)) this.known.delete(day)
    const { clock } = this.parts
    const until = clock.monotonic() + this.terms.spendMs
    let gone = 0
    for (const day of [...days].sort((a, b) => a - b)) {
      if (clock.monotonic() >= until) break
      gone += await this.work(this.dayOf(day), isOwner, until)
    }
    return gone
  }

  private dayOf(day: number): Day {
    const { batch } = this.terms
    const fresh = { day, after: '', isWalked: false, isFirstWalk: true, isWhole: false, batch, idleRuns: 0 }
    const known = this.known.get(day) ?? fresh
    this.known.set(day, known)
    return known
  }

  private async work(day: Day, isOwner: boolean, until: number): Promise<number> {
    const { after, isFirstWalk } = day
    const { gone, problem } = await this.walk(day, until)
    if (!isOwner) return gone
    let why = problem
    if (day.isWalked) {
      const dropped = await this.tried(this.drop(day))
      if (typeof dropped === 'number') {
        this.known.delete(day.day)
        return gone + dropped
      }
      why = dropped
      // In the way of the drop alone, it is tried again as it is; else there are records left to be removed.
      if (why === null || isTooLong(why)) Object.assign(day, { after: '', isWalked: false, isFirstWalk: false })
      if (why !== null && isTooLong(why)) day.isWhole = true
    }
    const hasMoved = gone > 0 || (isFirstWalk && day.after > after)
    day.idleRuns = hasMoved ? 0 : day.idleRuns + 1
    if (day.idleRuns === IDLE_RUNS_MAX) this.tell(day, why)
    return gone
  }

  /** Batch by batch, at least one, until all were looked at or the time is up. */
  private async walk(day: Day, until: number): Promise<{ gone: number; problem: HoldfastError | null }> {
    let gone = 0
    while (!day.isWalked) {
      const answer = await this.tried(this.removeBatch(day))
      if (isHoldfastError(answer)) {
        if (isTooLong(answer)) day.batch = Math.max(BATCH_MIN, day.batch >> 2)
        return { gone, problem: answer }
      }
      gone += answer.gone
      day.batch = Math.min(this.terms.batch, day.batch * 2)
      if (answer.last === null) day.isWalked = true
      else day.after = answer.last
      if (this.parts.clock.monotonic() >= until) break
    }
    return { gone, problem: null }
  }

  /** Records, keys and counts go together. They are reached through the archive: that is what others have the right to. */
  private removeBatch({ day, after, batch, isWhole }: Day): Promise<{ gone: number; last: string | null }> {
    const text = `WITH seen AS MATERIALIZED (
      SELECT walk.place, walk.id FROM (
        SELECT old.ctid AS place, old.id, old.idempotency_key FROM holdfast.archive AS old
        WHERE old.expiry_day = ${day} AND old.id > $1::text ORDER BY old.id LIMIT $3::bigint
      ) AS walk ${isWhole ? '' : 'WHERE walk.idempotency_key IS NOT NULL'} ORDER BY walk.id LIMIT $2::bigint
    ),
    gone AS (
      DELETE FROM holdfast.archive AS archive WHERE archive.expiry_day = ${day} AND archive.ctid = ANY (ARRAY(
        SELECT old.ctid FROM holdfast.archive AS old WHERE old.expiry_day = ${day}
          AND old.ctid = ANY (ARRAY(SELECT place FROM seen)) FOR UPDATE SKIP LOCKED
      ))
      RETURNING archive.ns, archive.lane, archive.state, archive.id, archive.idempotency_key
    ),
    counted AS (
      INSERT INTO holdfast.counter (ns, lane, state, jobs) SELECT ns, lane, state, -count(*) FROM gone GROUP BY 1, 2, 3
    ),
    unkeyed AS (
      DELETE FROM holdfast.key AS key USING gone WHERE key.ns = ANY (ARRAY[gone.ns]) AND key.lane = gone.lane
        AND key.key = gone.idempotency_key AND key.id = gone.id
    )
    SELECT (SELECT count(*) FROM gone) AS gone, CASE WHEN (SELECT count(*) FROM seen) = $2::bigint THEN (SELECT max(id) FROM seen)
      ELSE (SELECT old.id FROM holdfast.archive AS old WHERE old.expiry_day = ${day} AND old.id > $1::text
        ORDER BY old.id OFFSET $3::bigint - 1 LIMIT 1) END AS last`
    return this.transaction(async (query) => {
      await query(once(`${PATIENCE}; ${BY_INDEX}`), [])
      const { rows } = await query(this.statement(text), [after, batch, batch * LOOKS_EACH])
      return (rows as readonly { readonly gone: number; readonly last: string | null }[])[0] ?? { gone: 0, last: null }
    })
  }

  /**
   * Returns how many went with the table; null: there are some with a key. Nobody changes the day while it is counted, and everybody
   * reads it. The drop takes the archive, then the day, as all others do; who is in its way, such as a long transaction, stops it.
   */
  private drop({ day, isWhole }: Day): Promise<number | null> {
    const table = `holdfast.archive_d${day}`
    // All were removed: their dead rows would be read with the table, but those that the index has marked are passed over.
    const [plan, where] = isWhole ? [BY_INDEX, "WHERE id > ''"] : ['SET LOCAL enable_seqscan = on', '']
    const count = `WITH found AS MATERIALIZED (
      SELECT ns, lane, state, count(*) AS jobs, count(idempotency_key) AS keyed FROM ${table} ${where} GROUP BY ns, lane, state
    ),
    counted AS (
      INSERT INTO holdfast.counter (ns, lane, state, jobs)
      SELECT ns, lane, state, -jobs FROM found WHERE NOT EXISTS (SELECT FROM found AS any_lane WHERE any_lane.keyed > 0)
    )
    SELECT coalesce(sum(jobs), 0)::bigint AS jobs, coalesce(sum(keyed), 0)::bigint AS keyed FROM found`
    return this.transaction(async (query) => {
      await query(once(`${PATIENCE_TO_COUNT}; ${plan}`), [])
      await query(this.statement(`LOCK TABLE ${table} IN SHARE ROW EXCLUSIVE MODE`), [])
      await query(once(`${PATIENCE}; SET LOCAL statement_timeout = ${this.terms.countMs}`), [])
      const { rows } = await query(this.statement(count), [])
      const [found] = rows as readonly { readonly jobs: number; readonly keyed: number }[]
      if (found === undefined || found.keyed > 0) return null
      await query(once('SET LOCAL statement_timeout TO DEFAULT'), [])
      await query(this.statement(`DROP TABLE ${table}`), [])
      return found.jobs
    })
  }

  /** Not repeated at once: others would wait each time. */
  private transaction<T>(run: (query: Link['query']) => Promise<T>): Promise<T> {
    return this.parts.link.transaction(run, { isRepeated: false })
  }

  private statement(text: string): Prepared {
    return once(inSchema(text, this.parts.schema))
  }

  private async tried<T>(work: Promise<T>): Promise<T | HoldfastError> {
    try {
      return await work
    } catch (error) {
      if (isHoldfastError(error)) return error
      throw error
    }
  }

  private tell({ day }: Day, why: HoldfastError | null): void {
    const { server } = this.parts.link.facts
    const reason = why?.message ?? 'somebody keeps records of it locked'
    const what = `keeps archive_d${day}, whose day is over: ${IDLE_RUNS_MAX} runs of upkeep could remove nothing of it`
    const message = `PostgreSQL at ${server} ${what}; look for sessions that stay in a transaction (${reason})`
    this.parts.warn({ code: 'OLD_DAY', server }, message)
  }
}

/** The server or we gave up on it, as opposed to somebody who was in the way. */
const isTooLong = (error: HoldfastError): boolean =>
  sqlStateOf(error) === '57014' || error.details.timeoutMs !== undefined
