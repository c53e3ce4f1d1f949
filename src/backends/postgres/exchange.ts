/** One statement on one borrowed connection, with a deadline of its own, and the verdict on what came of it. */
import { createHash } from 'node:crypto'
import type { PoolClient, QueryArrayConfig, QueryConfig, QueryResult } from 'pg'
import type { Timers } from '../../clock.ts'
import type { Deadlines } from '../../deadlines.ts'
import { COLUMN_TYPES } from './decode.ts'
import { type Stage, timedOut, type Verdict, verdictOf } from './errors.ts'

/** A statement of the store, which is sent again and again. */
export interface Prepared {
  readonly name: string
  readonly text: string
  /**
   * Claims jobs: it is sent only when all who must know have dealt with a change of the server, so that what is held is renewed before
   * more is taken.
   */
  readonly isClaiming?: boolean
  /** Writes, so that what fails after it in the same operation leaves something done. */
  readonly isWriting?: boolean
  /** Sent once, so it is not prepared; without values it may be several statements, whose rows are not given. */
  readonly isOnce?: boolean
}

/** Why something failed and what is to be done, on its way from where it failed to where that is decided. */
export class Failed extends Error {
  readonly verdict: Verdict

  constructor(verdict: Verdict) {
    super(verdict.error.message)
    this.verdict = verdict
  }
}

export interface ExchangeOptions {
  readonly server: string
  readonly answerMs: number
  readonly deadlines: Deadlines
  readonly timers: Timers
}

const names = new Map<string, string>()
/** More statements than a store has; what an application makes of its own must not fill the memory. */
const NAMES_MAX = 1000

/** The same text has the same name everywhere, and another text another one, whatever release it comes from. */
export function preparedName({ text }: Prepared): string {
  let name = names.get(text)
  if (name === undefined) {
    name = `holdfast_${createHash('sha1').update(text).digest('hex').slice(0, 20)}`
    if (names.size < NAMES_MAX) names.set(text, name)
  }
  return name
}

export class Exchange {
  private readonly options: ExchangeOptions

  constructor(options: ExchangeOptions) {
    this.options = options
  }

  /** Rejects with Failed. */
  send(client: PoolClient, query: QueryConfig | QueryArrayConfig, stage: Stage): Promise<QueryResult> {
    const { server, answerMs, deadlines, timers } = this.options
    return new Promise((resolve, reject) => {
      let isSettled = false
      const fail = (thrown: unknown): void => {
        isSettled = true
        reject(new Failed(verdictOf(thrown, server, stage)))
      }
      const expire = (): void => {
        if (!isSettled) fail(timedOut(server, answerMs, stage))
      }
      // A process that was held up finds the timer due before it reads the answer that came in time: read first.
      const deadline = deadlines.add(answerMs, () => timers.defer(expire))
      const done = (error: Error, result: QueryResult): void => {
        deadlines.delete(deadline)
        if (isSettled) return
        isSettled = true
        if (error) fail(error)
        else resolve(result)
      }
      // Given a callback it returns nothing.
      void client.query({ ...query, types: COLUMN_TYPES }, done)
    })
  }

  /** Text of our own, without values. */
  command(client: PoolClient, text: string, stage: Stage): Promise<QueryResult> {
    return this.send(client, { text }, stage)
  }
}
