/** A client in virtual time on a memory store whose members a test may replace, and the lines that it logs. */
import { pino } from 'pino'
import type { Backend } from '#dist/src/backends/backend.js'
import { MemoryBackend } from '#dist/src/backends/memory/backend.js'
import { connectWith, type Holdfast } from '#dist/src/client.js'
import type { ConnectOptions } from '#dist/src/connect-options.js'
import { SeededRandom } from '../simulation/random.ts'
import { type VirtualProcess, World } from '../simulation/virtual-time.ts'
import { over } from './faulty-backend.ts'

export interface VirtualClient {
  readonly world: World
  readonly process: VirtualProcess
  /** The store itself, past whatever stands before it. */
  readonly store: Backend
  readonly client: Holdfast
  readonly warnings: readonly { readonly code?: string; readonly msg: string; readonly left_out?: number }[]
}

export function virtualClient(
  changes: (store: Backend) => Partial<Backend>,
  options: ConnectOptions = {},
): VirtualClient {
  const world = new World()
  const process = world.process('p')
  const random = new SeededRandom(1)
  const platform = { clock: process, timers: process, random }
  const store = new MemoryBackend('', { ...platform, namespace: 'test', warn: () => {}, openDeadlineMs: 1_000 })
  const warnings: VirtualClient['warnings'][number][] = []
  const logger = pino({ level: 'warn' }, { write: (line: string) => warnings.push(JSON.parse(line)) })
  const client = connectWith({ ...platform, backend: over(store, changes(store)), options: { logger, ...options } })
  return { world, process, store, client, warnings }
}

/** Runs virtual time until `work` has settled; gives the time at which it did. */
export async function settledAt(world: World, work: Promise<unknown>, limitMs = 120_000): Promise<number> {
  let at: number | null = null
  const note = (): void => {
    at = world.time
  }
  work.then(note, note)
  await world.run(world.time + limitMs, () => at !== null)
  if (at === null) throw new Error(`not settled within ${limitMs} ms of virtual time`)
  return at
}
