/**
 * The wall clock of servers that a test started, as a shift against the real one that can be changed while they run. Timers that
 * use the monotonic clock go on as they were. Several servers may be given the same clock.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { buildPreload } from '../preload.ts'
import { ServerFolder } from '../server-process.ts'

export class ServerClock {
  /** Start a server with it. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: ServerFolder
  readonly #file: number
  #shiftMs = 0

  private constructor(library: string, folder: ServerFolder) {
    const path = join(folder.path, 'clock')
    this.#folder = folder
    this.#file = openSync(path, 'w')
    this.env = { LD_PRELOAD: library, HOLDFAST_CLOCK: path }
    this.set(0)
  }

  static async make(): Promise<ServerClock> {
    const library = await buildPreload(new URL('clock.c', import.meta.url))
    return new ServerClock(library, await ServerFolder.make('clock'))
  }

  get shiftMs(): number {
    return this.#shiftMs
  }

  /** What the servers take for now. */
  now(): number {
    return Date.now() + this.#shiftMs
  }

  advance(ms: number): void {
    this.set(this.#shiftMs + ms)
  }

  /** Against the real clock; takes effect at once, may be negative or less than before. */
  set(shiftMs: number): void {
    const micros = Buffer.alloc(8)
    micros.writeBigInt64LE(BigInt(Math.round(shiftMs * 1000)))
    // Written over and never shortened: the servers have it mapped.
    writeSync(this.#file, micros, 0, micros.length, 0)
    this.#shiftMs = shiftMs
  }

  /** When the servers have ended. */
  async remove(): Promise<void> {
    closeSync(this.#file)
    await this.#folder.remove()
  }
}
