/**
 * What a scenario needs of a store: clients of which the first is faulty, a clock that goes as it is told, faults that happen when they
 * are asked for and at no other time, and a look past the store at what it has.
 */
import type { MessageType, Reply, Request } from '#dist/src/backends/protocol/index.js'
import type { SeededRandom } from '../simulation/random.ts'
import type { Glimpse } from './glimpse.ts'

export interface ScenarioBackend {
  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>>
}

export interface ScenarioClock {
  now(): number
  advance(ms: number): void
  freeze(ms: number): void
}

export interface ScenarioStore {
  readonly clock: ScenarioClock
  /** How likely a scenario has a restart: starts may be slow. */
  readonly restartChance: number
  /** An empty namespace; what was before it must not matter. */
  begin(namespace: string): Promise<void>
  /** Resolves with the clients, all connected; the first is the faulty one. */
  open(count: number): Promise<readonly ScenarioBackend[]>
  /** The next call of the faulty client may be lost on the way there, or on the way back, or be refused. */
  arm(random: SeededRandom): Promise<void>
  /** And the calls after it are not. */
  disarm(): Promise<void>
  /** From now on, until it is told otherwise, whatever the faulty client asks for may fail. */
  setDown(isDown: boolean): Promise<void>
  /** Something that nobody may notice, such as scripts forgotten or plans made anew. Gives what it was. */
  shake(random: SeededRandom): Promise<string>
  /** Clients find out by themselves. */
  killConnections(): Promise<void>
  restart(random: SeededRandom): Promise<void>
  look(): Promise<Glimpse>
  /** Empty: all that is stored fits together. */
  recount(): Promise<readonly string[]>
  /** Ends the clients, also after a failure. Gives what else was met. */
  end(): Promise<readonly string[]>
}
