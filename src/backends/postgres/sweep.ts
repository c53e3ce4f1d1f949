/**
 * Rids the hot table of dead rows that cannot be vacuumed. A snapshot that another session holds for long keeps every row that died
 * since, and each claim walks over all of them. What lives is little, so it is put into the emptied table: a TRUNCATE asks no snapshot.
 * Done only after a slow claim, when the table is far larger than what lives in it and nobody is at work on it for longer than a moment.
 */
import type { Clock } from '../../clock.ts'
import { isHoldfastError } from '../../errors.ts'
import type { Link, Prepared } from './link.ts'
import { inSchema } from './statement.ts'

/** A claim that took as long is looked into. Without dead rows it takes one or two milliseconds. */
const SLOW_MS = 10
/** Between two looks, and after one that found nothing to do or somebody in the way. */
const AGAIN_MS = 1_000
const REST_MS = 10_000
/** What a table may take up without being looked into: about 12,000 dead rows. */
const BYTES_MIN = 4 * 1024 * 1024
/** So many times what lives in it. */
const TIMES_MIN = 4
/** More than this is not moved while everybody waits. */
const LIVE_ROWS_MAX = 20_000
const LIVE_BYTES_MAX = 16 * 1024 * 1024

const once = (text: string): Prepared => ({ name: 'sweep', text, isOnce: true })

/** Others wait behind whoever waits for a table. */
const PATIENCE = once("SET LOCAL lock_timeout = '100ms'")
/** To read all of a table is right here. */
const PLAN = once('SET LOCAL enable_seqscan = on')

const LOOK = `SELECT pg_relation_size(oid) AS size, has_table_privilege(oid, 'TRUNCATE') AS is_permitted
FROM pg_catalog.pg_class WHERE oid = 'holdfast.job'::regclass`
const LOCK = 'LOCK TABLE holdfast.job IN ACCESS EXCLUSIVE MODE'
/** Sizes as they are stored, without reading what is stored apart. */
const MEASURE = `SELECT pg_relation_size('holdfast.job'::regclass) AS size, count(*) AS live, coalesce(sum(
  200 + coalesce(pg_column_size(payload), 0) + coalesce(pg_column_size(payload_bytes), 0) + coalesce(pg_column_size(progress), 0)
  + coalesce(pg_column_size(progress_bytes), 0) + coalesce(pg_column_size(metadata), 0)
  + coalesce(pg_column_size(last_failure), 0)
), 0)::bigint AS bytes FROM holdfast.job`
const KEEP = 'CREATE TEMPORARY TABLE holdfast_live ON COMMIT DROP AS SELECT * FROM holdfast.job'
const EMPTY = 'TRUNCATE holdfast.job'
const REFILL = 'INSERT INTO holdfast.job OVERRIDING SYSTEM VALUE SELECT * FROM pg_temp.holdfast_live'

interface Measure {
  readonly size: number
  readonly live: number
  readonly bytes: number
}

export class Sweep {
  private readonly link: Link
  private readonly schema: string
  private readonly clock: Pick<Clock, 'monotonic'>
  private restUntil = Number.NEGATIVE_INFINITY

  constructor(link: Link, schema: string, clock: Pick<Clock, 'monotonic'>) {
    this.link = link
    this.schema = schema
    this.clock = clock
  }

  /** A claim took so long. Nobody waits for what follows. */
  claimTook(durationMs: number): void {
    if (durationMs < SLOW_MS) return
    const now = this.clock.monotonic()
    if (now < this.restUntil) return
    this.restUntil = now + REST_MS
    this.run().then(
      (hasSwept) => {
        if (hasSwept) this.restUntil = now + AGAIN_MS
      },
      () => {}, // It is tried again after the rest.
    )
  }

  /** Whether it was worth it and was done; if not, nothing has changed. */
  async run(): Promise<boolean> {
    // Whoever reads with an older snapshot would find the table empty.
    if (this.link.facts.defaultIsolation !== 'read committed') return false
    try {
      const { rows } = await this.link.query(this.statement(LOOK), [])
      const [look] = rows as readonly { readonly size: number; readonly is_permitted: boolean }[]
      if (look === undefined || !look.is_permitted || look.size < BYTES_MIN) return false
      return await this.link.transaction((query) => this.renew(query), { isRepeated: false })
    } catch (error) {
      if (isHoldfastError(error)) return false
      throw error
    }
  }

  private async renew(query: Link['query']): Promise<boolean> {
    for (const setting of [PATIENCE, PLAN]) await query(setting, [])
    // Once before anybody has to wait, and once when nobody can change it any more.
    if (!isWorthIt(await this.measure(query))) return false
    await query(this.statement(LOCK), [])
    if (!isWorthIt(await this.measure(query))) return false
    for (const text of [KEEP, EMPTY, REFILL]) await query(this.statement(text), [])
    return true
  }

  private async measure(query: Link['query']): Promise<Measure> {
    const { rows } = await query(this.statement(MEASURE), [])
    return (rows as readonly Measure[])[0] ?? { size: 0, live: 0, bytes: 0 }
  }

  private statement(text: string): Prepared {
    return once(inSchema(text, this.schema))
  }
}

const isWorthIt = ({ size, live, bytes }: Measure): boolean =>
  size >= BYTES_MIN && size >= TIMES_MIN * bytes && live <= LIVE_ROWS_MAX && bytes <= LIVE_BYTES_MAX
