/** The processes of a chaos run: each can be killed, frozen and replaced, and is gone with the test. */
import { Child } from '../support/child.ts'

export interface Place {
  readonly url: string
  readonly namespace: string
  readonly ledger: string
}

/** A seat that one process has at a time. */
export class Member {
  readonly name: string
  readonly #start: () => Child
  #child: Child

  constructor(name: string, start: () => Child) {
    this.name = name
    this.#start = start
    this.#child = start()
  }

  get child(): Child {
    return this.#child
  }

  /** SIGKILL, and another process in its place at once. */
  async replace(): Promise<void> {
    await this.#child.kill()
    this.#child = this.#start()
  }
}

export function workerMember(name: string, place: Place, options: Readonly<Record<string, unknown>>): Member {
  return new Member(
    name,
    () => new Child('crew.mjs', [place.url, place.namespace, place.ledger, JSON.stringify(options)]),
  )
}

export interface Production {
  readonly from: number
  readonly to: number
  readonly batch: number
  readonly everyMs: number
  /** Default: the default lane alone. */
  readonly lanes?: readonly string[]
}

export function producer(name: string, place: Place, production: Production): Child {
  return new Child('producer.mjs', [place.url, place.namespace, place.ledger, name, JSON.stringify(production)])
}
