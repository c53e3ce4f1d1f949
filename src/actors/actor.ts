/**
 * The kernel: an actor has a bounded mailbox and handles one message after another, never two at once.
 * States: `idle` (made, not started), `active`, `stopping` (finishes what it must, refuses what is new), `stopped`.
 * A throw out of `receive` is a bug of the actor, not of its messages: it is told to the supervisor, which restarts or escalates.
 */
import type { Timers } from '../clock.ts'
import { withDeadline } from '../clock.ts'
import { HoldfastError } from '../errors.ts'
import { Mailbox } from './mailbox.ts'

export type TellOutcome = 'accepted' | 'full' | 'stopped'
export type ActorState = 'idle' | 'active' | 'stopping' | 'stopped'

/** Hears of every throw out of an actor. */
export type FailureListener = (actor: Actor<never>, error: unknown) => void

const MAILBOX_CAPACITY = 100_000

export abstract class Actor<M extends { readonly type: string }> {
  readonly name: string
  readonly #mailbox = new Mailbox<M>(MAILBOX_CAPACITY)
  #isScheduled = false
  #current: ActorState = 'idle'
  #onFailure: FailureListener | null = null

  constructor(name: string) {
    this.name = name
  }

  get state(): ActorState {
    return this.#current
  }

  /** Handles one message. Must not throw for anything that a user or a store can cause. */
  protected abstract receive(message: M): void
  /** Called by `start`; resolves when the actor is ready. */
  protected onStart(): void | Promise<void> {}
  /** Called by `stop`; resolves when everything is given back. */
  protected onStop(): void | Promise<void> {}
  /** Called after a failure, before the next message: back to a sound state. */
  protected onRestart(): void {}

  supervise(listener: FailureListener): void {
    this.#onFailure = listener
  }

  async start(): Promise<void> {
    this.#current = 'active'
    await this.onStart()
  }

  async stop(): Promise<void> {
    if (this.#current === 'stopped' || this.#current === 'stopping') return
    this.#current = 'stopping'
    await this.onStop()
    this.#current = 'stopped'
  }

  restart(): void {
    this.onRestart()
  }

  /** Puts a message into the mailbox. The answer says whether it will be handled. */
  tell(message: M): TellOutcome {
    if (this.#current === 'stopped') return 'stopped'
    if (!this.#mailbox.put(message)) return 'full'
    if (!this.#isScheduled) {
      this.#isScheduled = true
      queueMicrotask(() => this.#deliver())
    }
    return 'accepted'
  }

  /** Sends a message that carries a way to answer, and waits for the answer until the deadline. */
  ask<R>(build: (reply: (value: R) => void) => M, timeoutMs: number, timers: Timers): Promise<R> {
    const answer = new Promise<R>((resolve, reject) => {
      const outcome = this.tell(build(resolve))
      if (outcome !== 'accepted')
        reject(new HoldfastError(outcome === 'full' ? 'OVERLOADED' : 'CLOSED', `${this.name}: mailbox ${outcome}`))
    })
    return withDeadline(
      answer,
      timeoutMs,
      timers,
      () => new HoldfastError('INTERNAL', `${this.name} did not answer within ${timeoutMs} ms`),
    )
  }

  #deliver(): void {
    this.#isScheduled = false
    for (const message of this.#mailbox.takeAll()) {
      try {
        this.receive(message)
      } catch (error) {
        this.#onFailure?.(this as unknown as Actor<never>, error)
      }
    }
  }
}
