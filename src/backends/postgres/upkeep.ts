/**
 * What the tables need from time to time beside the messages: a partition of the archive for each day to come, those whose day
 * is over emptied and dropped, counters folded, stray log lines swept. Whoever does not own the tables neither makes nor drops partitions: without one
 * of its own a record goes to `archive_rest`, where it goes row by row. Nothing here is ever waited for, and what fails is tried the next time.
 */
import { isHoldfastError } from '../../errors.ts'
import type { Link, Prepared } from './link.ts'
import { OldDays, type OldDaysParts } from './old-days.ts'
import { inSchema, quoted } from './statement.ts'

/** Days ahead that have a partition: more than the seven that completed jobs are kept by default. */
const DAYS_AHEAD = 9
/** Longer retention is kept in `archive_rest`. */
const DAYS_AHEAD_MAX = 400
/** Whoever waits for the lock of a table makes all others wait behind. */
const LOCK = once("SET LOCAL lock_timeout = '100ms'")

const LOOK = `SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::integer AS today,
  pg_has_role(archive.relowner, 'USAGE') AS is_owner,
  ARRAY(SELECT substr(day.relname, 10)::integer FROM pg_catalog.pg_inherits AS part
    JOIN pg_catalog.pg_class AS day ON day.oid = part.inhrelid
    WHERE part.inhparent = archive.oid AND day.relname ~ '^archive_d[0-9]+$')::text AS days,
  (SELECT (max(kept.keep_until) / 86400000)::integer FROM holdfast.namespace
    CROSS JOIN LATERAL (SELECT rest.keep_until FROM holdfast.archive_rest AS rest
      WHERE rest.ns = namespace.ns AND rest.keep_until IS NOT NULL ORDER BY rest.keep_until DESC LIMIT 1) AS kept
  ) AS last_rest
FROM pg_catalog.pg_class AS archive WHERE archive.oid = $1::text::regclass`

const FOLD = `WITH old AS (DELETE FROM holdfast.counter RETURNING ns, lane, state, jobs)
INSERT INTO holdfast.counter (ns, lane, state, jobs)
SELECT ns, lane, state, sum(jobs) FROM old GROUP BY ns, lane, state HAVING sum(jobs) <> 0`

/** Lines that were added while their job ended in the very same moment: they belong to nothing any more. Those of live jobs are few. */
const SWEEP = `DELETE FROM holdfast.job_log AS log
WHERE NOT EXISTS (SELECT FROM holdfast.job AS job WHERE job.seq = ANY (ARRAY[log.job_seq]))`

function once(text: string): Prepared {
  return { name: 'upkeep', text, isOnce: true }
}

interface Look {
  readonly today: number
  readonly is_owner: boolean
  readonly days: string
  readonly last_rest: number | null
}

export class Upkeep {
  private readonly link: Link
  private readonly schema: string
  private readonly oldDays: OldDays

  constructor(parts: OldDaysParts) {
    this.link = parts.link
    this.schema = parts.schema
    this.oldDays = new OldDays(parts)
  }

  /** Returns how many records of days that are over went. */
  async run(): Promise<number> {
    await this.tried(this.link.query(this.statement(FOLD), []))
    await this.tried(this.link.query(this.statement(SWEEP), []))
    const look = await this.look()
    if (look === null) return 0
    const days = daysOf(look)
    if (look.is_owner) await this.makeDays(look, days)
    return this.oldDays.run(
      days.filter((day) => day < look.today),
      look.is_owner,
    )
  }

  /** Makes the partitions that the records of today may need. */
  async prepare(): Promise<void> {
    const look = await this.look()
    if (look?.is_owner === true) await this.makeDays(look, daysOf(look))
  }

  private async look(): Promise<Look | null> {
    const archive = `${quoted(this.schema)}.archive`
    const answer = await this.tried(this.link.query(this.statement(LOOK), [archive]))
    return (answer?.rows[0] as Look | undefined) ?? null
  }

  private async makeDays({ today, last_rest }: Look, days: readonly number[]): Promise<void> {
    const known = new Set(days)
    const wanted = Array.from({ length: DAYS_AHEAD + 1 }, (_, ahead) => today + ahead)
    // Somebody keeps for longer: what is there already stays where it is, what comes after it gets a day of its own.
    if (last_rest !== null && last_rest > today + DAYS_AHEAD && last_rest < today + DAYS_AHEAD_MAX)
      wanted.push(last_rest + 1, last_rest + 2)
    for (const day of wanted) if (!known.has(day)) await this.tried(this.make(day))
  }

  private make(day: number): Promise<void> {
    const text = `CREATE TABLE IF NOT EXISTS holdfast.archive_d${day} PARTITION OF holdfast.archive FOR VALUES FROM (${day}) TO (${day + 1})`
    return this.link.transaction(async (query) => {
      await query(LOCK, [])
      await query(this.statement(text), [])
    })
  }

  private statement(text: string): Prepared {
    return once(inSchema(text, this.schema))
  }

  /** null: it did not work out now. */
  private async tried<T>(work: Promise<T>): Promise<T | null> {
    try {
      return await work
    } catch (error) {
      if (isHoldfastError(error)) return null
      throw error
    }
  }
}

const daysOf = ({ days }: Look): readonly number[] =>
  days
    .replace(/[{}]/g, '')
    .split(',')
    .filter((day) => day !== '')
    .map(Number)
