/**
 * The way from the operations of the store to the server. A statement goes out alone on a borrowed connection and commits by itself; what
 * fails says whether it may have been done. Conflicts with others are repeated here, nothing else is. When the server is another one than
 * before, the listeners are told, and nothing is claimed until they have done their work.
 */
import type { PoolClient } from 'pg'
import { delay } from '../../clock.ts'
import type { Deadlines } from '../../deadlines.ts'
import { type ChangeListener, Changes } from '../changes.ts'
import type { ClientSource } from './client-source.ts'
import { closed, isStandby, rolledBack, sqlStateOf, type Verdict, verdictOf } from './errors.ts'
import { Exchange, Failed, type Prepared, preparedName } from './exchange.ts'
import { PlanAge } from './plan-age.ts'
import type { ServerFacts } from './server-facts.ts'
import { ServerWatch } from './server-watch.ts'
import type { SettingsCheck } from './settings-check.ts'
import { backOffMs, beginning, type Wiring } from './wiring.ts'

export type { Prepared } from './exchange.ts'

/** `count`: rows that the statement changed or found. */
export interface Answer {
  /** Objects, or arrays in the order of the columns when asked for. */
  readonly rows: readonly unknown[]
  readonly count: number
}

export type RowMode = 'object' | 'array'

export interface LinkFacts extends ServerFacts {
  /** As messages name it. */
  readonly server: string
  /** Connections have no settings and no prepared statements of ours: they lead through a pooler. */
  readonly isPooled: boolean
  /** How often something was done again after a conflict with others. */
  readonly repeats: number
  /** How often the server was found to be another one, or restarted. */
  readonly changes: number
}

/** What the operations of the store see of the server. */
export interface TransactionOptions {
  /** Default true. */
  readonly isRepeated?: boolean
  /** It claims jobs, so it waits where statements that claim do. Default false. */
  readonly isClaiming?: boolean
}

export interface Link {
  /** Rejects with a HoldfastError. */
  query(statement: Prepared, values: readonly unknown[], mode?: RowMode): Promise<Answer>
  /** `run` is called again from the start after a conflict, unless told otherwise. Its `query` must not be used after it has ended. */
  transaction<T>(run: (query: Link['query']) => Promise<T>, options?: TransactionOptions): Promise<T>
  readonly facts: LinkFacts
  onChange(listener: ChangeListener): () => void
  close(): Promise<void>
}

export interface LinkOptions {
  readonly source: ClientSource
  readonly wiring: Wiring
  readonly deadlines: Deadlines
  readonly settings: SettingsCheck
  /** Known to be behind a pooler. */
  readonly isPooled: boolean
}

const REPEATS_MAX = 8
const REPEAT_BACK_OFF = { baseMs: 10, maxMs: 500 }
/** How long closing waits for what is under way. */
const CLOSE_WAIT_MS = 1000

export class PostgresLink implements Link {
  private readonly source: ClientSource
  private readonly wiring: Wiring
  private readonly deadlines: Deadlines
  private readonly exchange: Exchange
  private readonly changes: Changes
  private readonly watch: ServerWatch
  private readonly plans: PlanAge
  private readonly begin: string
  private readonly borrowed = new Set<PoolClient>()
  private isPooled: boolean
  private isClosed = false
  private onReturn: () => void = () => {}
  private repeats = 0

  constructor({ source, wiring, deadlines, settings, isPooled }: LinkOptions) {
    this.source = source
    this.wiring = wiring
    this.deadlines = deadlines
    this.isPooled = isPooled
    this.changes = new Changes(wiring.timers)
    const { server } = source
    const { clock, timers, limits } = wiring
    this.plans = new PlanAge(clock)
    this.begin = beginning(limits)
    this.exchange = new Exchange({ server, answerMs: limits.answerMs, deadlines, timers })
    this.watch = new ServerWatch({ server, exchange: this.exchange, changes: this.changes, settings, clock })
  }

  get facts(): LinkFacts {
    const { facts, changeCount } = this.watch
    return {
      ...facts,
      server: this.source.server,
      isPooled: this.isPooled,
      repeats: this.repeats,
      changes: changeCount,
    }
  }

  onChange(listener: ChangeListener): () => void {
    return this.changes.add(listener)
  }

  /** Makes sure that there is a server that can be used. Rejects with a HoldfastError. */
  async connect(): Promise<void> {
    this.giveBack(await this.borrow(false), false)
  }

  /** A connection that nobody had borrowed was lost; only what the server said of a crash matters. */
  idleLost(error: Error): void {
    if (verdictOf(error, this.source.server, 'connect').isCrash) this.watch.suspectCrash()
  }

  query(statement: Prepared, values: readonly unknown[], mode: RowMode = 'object'): Promise<Answer> {
    return this.repeating(async () => {
      const client = await this.borrow(statement.isClaiming === true)
      return this.finishing(client, () => this.send(client, { statement, values, mode }, 'statement'))
    })
  }

  transaction<T>(
    run: (query: Link['query']) => Promise<T>,
    { isRepeated = true, isClaiming = false }: TransactionOptions = {},
  ): Promise<T> {
    return this.repeating(() => this.transact(run, isClaiming), isRepeated ? REPEATS_MAX : 0)
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    if (this.borrowed.size > 0) {
      const returned = new Promise<void>((resolve) => {
        this.onReturn = () => this.borrowed.size === 0 && resolve()
      })
      await Promise.race([returned, delay(CLOSE_WAIT_MS, this.wiring.timers, true)])
    }
    for (const client of [...this.borrowed]) this.giveBack(client, true)
    await this.source.close()
    this.deadlines.clear()
  }

  private async send(
    client: PoolClient,
    { statement, values, mode }: { statement: Prepared; values: readonly unknown[]; mode: RowMode },
    stage: 'statement' | 'transaction',
  ): Promise<Answer> {
    const query = {
      text: statement.text,
      values: values as unknown[],
      ...(this.isPooled || statement.isOnce === true ? {} : { name: preparedName(statement) }),
      ...(mode === 'array' ? { rowMode: 'array' as const } : {}),
    }
    const { clock } = this.wiring
    const sentAt = clock.monotonic()
    try {
      // The driver gives a list of results for several statements.
      const { rows = [], rowCount } = await this.exchange.send(client, query, stage)
      return { rows, count: rowCount ?? 0 }
    } finally {
      if ('name' in query) this.plans.took(clock.monotonic() - sentAt)
    }
  }

  private async transact<T>(run: (query: Link['query']) => Promise<T>, isClaiming: boolean): Promise<T> {
    const client = await this.borrow(isClaiming)
    let failure: Failed | undefined
    let isOver = false
    const query: Link['query'] = async (statement, values, mode = 'object') => {
      if (isOver) throw rolledBack(this.source.server)
      try {
        return await this.send(client, { statement, values, mode }, 'transaction')
      } catch (thrown) {
        if (!(thrown instanceof Failed)) throw thrown
        failure ??= thrown
        throw thrown.verdict.error
      }
    }
    return this.finishing(client, async () => {
      await this.exchange.command(client, this.begin, 'transaction')
      try {
        const result = await run(query)
        isOver = true
        if (failure !== undefined) throw failure
        await this.commit(client)
        return result
      } catch (thrown) {
        isOver = true
        // Whatever `run` made of it: a conflict is answered by doing it all again, and a lost connection is not to be used again.
        const cause = failure ?? thrown
        await this.rollBack(client, cause)
        throw failure !== undefined && (failure.verdict.isConflict || thrown === failure) ? failure : thrown
      }
    })
  }

  private async commit(client: PoolClient): Promise<void> {
    const { command } = await this.exchange.command(client, 'COMMIT', 'commit')
    if (command !== 'COMMIT') throw rolledBack(this.source.server)
  }

  private async rollBack(client: PoolClient, cause: unknown): Promise<void> {
    if (cause instanceof Failed && cause.verdict.isDiscarded) return this.look(client, cause.verdict)
    try {
      await this.exchange.command(client, 'ROLLBACK', 'transaction')
    } catch {
      this.giveBack(client, true)
    }
  }

  /** Gives the connection back when `work` has ended, unless that has been done already. */
  private async finishing<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      this.giveBack(client, false)
      return result
    } catch (thrown) {
      if (thrown instanceof Failed) this.look(client, thrown.verdict)
      else this.giveBack(client, false)
      throw thrown
    }
  }

  private look(client: PoolClient, { isDiscarded, isCrash, error }: Verdict): void {
    if (isCrash) this.watch.suspectCrash()
    if (sqlStateOf(error) === '25006') this.source.passOn(client)
    this.giveBack(client, isDiscarded)
  }

  private giveBack(client: PoolClient, isDiscarded: boolean): void {
    if (!this.borrowed.delete(client)) return
    client.release(isDiscarded)
    this.onReturn()
  }

  /** Repeats what had a conflict with others, for a while. Rejects with a HoldfastError. */
  private async repeating<T>(work: () => Promise<T>, repeatsMax = REPEATS_MAX): Promise<T> {
    const { clock, random, timers, limits } = this.wiring
    const startedAt = clock.monotonic()
    for (let failures = 0; ; failures += 1) {
      try {
        return await work()
      } catch (thrown) {
        if (!(thrown instanceof Failed)) throw thrown
        const { error, isConflict, isUnnamedOnly } = thrown.verdict
        if (isUnnamedOnly) this.goPooled(error.message)
        const waitMs = backOffMs(failures, random, REPEAT_BACK_OFF)
        const isOver = clock.monotonic() - startedAt + waitMs >= limits.repeatMs || failures >= repeatsMax
        if (!isConflict || isOver || this.isClosed) throw error
        this.repeats += 1
        await delay(waitMs, timers)
      }
    }
  }

  /** From now on there are neither names of statements nor settings that last. */
  private goPooled(said: string): void {
    if (this.isPooled) return
    this.isPooled = true
    const { server } = this.source
    const message = `PostgreSQL at ${server} is behind a transaction pooler: no prepared statements from now on; say so with 'pooler=transaction' (${said})`
    this.wiring.warn({ code: 'POOLER', server }, message)
  }

  /** A connection to a primary that is known. Rejects with a HoldfastError. */
  private async borrow(isClaiming: boolean): Promise<PoolClient> {
    for (;;) {
      if (this.isClosed) throw closed(this.source.server)
      const client = await this.take()
      if (!this.isPooled && this.watch.isOutdated(client)) {
        this.giveBack(client, true)
        continue
      }
      if (!this.watch.isKnown(client, this.isPooled)) await this.introduce(client)
      if (!this.isPooled && this.plans.isOld(client)) await this.replan(client)
      if (!isClaiming || this.changes.isSettled) return client
      // Those who deal with a change need connections themselves.
      this.giveBack(client, false)
      await this.changes.settled()
    }
  }

  private async take(): Promise<PoolClient> {
    try {
      const client = await this.source.connect()
      this.borrowed.add(client)
      return client
    } catch (thrown) {
      const verdict = verdictOf(thrown, this.source.server, 'connect')
      if (verdict.isCrash) this.watch.suspectCrash()
      throw verdict.error
    }
  }

  /** Forgets the plans of all statements that were prepared on it, but not the statements. */
  private async replan(client: PoolClient): Promise<void> {
    await this.preparing(client, () => this.exchange.command(client, 'DISCARD PLANS', 'transaction'))
    this.plans.renewed(client)
  }

  /** Before anything of the caller's is sent. Rejects with a HoldfastError. */
  private async preparing<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (thrown) {
      if (thrown instanceof Failed) this.look(client, thrown.verdict)
      this.giveBack(client, true)
      throw thrown instanceof Failed ? thrown.verdict.error : thrown
    }
  }

  private async introduce(client: PoolClient): Promise<void> {
    const role = await this.preparing(client, () => this.watch.meet(client))
    if (this.source.isRefusingSettings) this.goPooled('it refuses settings in the first packet')
    if (role === 'primary') {
      this.plans.renewed(client)
      return
    }
    this.source.passOn(client)
    this.giveBack(client, true)
    throw isStandby(this.source.server)
  }
}
