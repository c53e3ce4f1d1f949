/** What the suite asks of a library: one transaction of an application, which inserts an order and enqueues beside it. */
import type { Transaction } from 'holdfast'

export interface Work {
  readonly order: number
  /** Called inside the transaction, after the order; a synchronous library does not wait for it. */
  enqueue(transaction: Transaction): Promise<unknown>
  /** Awaited before the end, where the library can wait. */
  readonly inside?: () => Promise<void>
  /** The application fails after it has enqueued, so the transaction is rolled back. */
  readonly fails?: boolean
}

/** A library at work on one database, with one connection and no more. */
export interface Session {
  transaction(work: Work): Promise<void>
  close(): Promise<void>
}

export interface Library {
  readonly name: string
  /** False: its transactions are over before anything that is awaited goes on. */
  readonly canWait: boolean
  open(place: string): Session | Promise<Session>
}

export class Failure extends Error {}

/** What every asynchronous library does once it has inserted the order. */
export async function enqueueAndEnd(transaction: Transaction, { enqueue, inside, fails }: Work): Promise<void> {
  await enqueue(transaction)
  await inside?.()
  if (fails === true) throw new Failure('the application failed')
}

/** The same without waiting. What was enqueued is looked at afterwards by the test. */
export function enqueueAtOnce(transaction: Transaction, { enqueue, fails }: Work): void {
  void enqueue(transaction)
  if (fails === true) throw new Failure('the application failed')
}

export async function ended(run: () => unknown): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
  }
}
