/**
 * The wall clock of servers that a test started, as a shift against the real one that can be changed while they run, or standing
 * still at a given time. Timers that use the monotonic clock go on as they were, and so do the timeouts of PostgreSQL; but its
 * `pg_sleep` goes by the wall clock, and so does not end while that stands still. Several servers may be given the same clock.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { buildPreload } from '../preload.ts'
import { ServerFolder } from '../server-process.ts'

export class ServerClock {
  /** Start a server with it. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: ServerFolder
  readonly #file: number
  #shiftMs = 0
  #frozenMs: number | null = null

  private constructor(library: string, folder: ServerFolder) {
    const path = join(folder.path, 'clock')
    this.#folder = folder
    this.#file = openSync(path, 'w', 0o644)
    this.env = { LD_PRELOAD: library, HOLDFAST_CLOCK: path }
    this.#write()
  }

  static async make(): Promise<ServerClock> {
    const library = await buildPreload(new URL('clock.c', import.meta.url))
    const folder = await ServerFolder.make('clock')
    await chmod(folder.path, 0o755) // Some servers run under another account.
    return new ServerClock(library, folder)
  }

  get shiftMs(): number {
    return this.#shiftMs
  }

  /** What the servers take for now. */
  now(): number {
    return this.#frozenMs ?? Date.now() + this.#shiftMs
  }

  /** A clock that stands still stays so. */
  advance(ms: number): void {
    if (this.#frozenMs === null) this.set(this.#shiftMs + ms)
    else this.freeze(this.#frozenMs + ms)
  }

  /** Against the real clock, and running; takes effect at once, may be negative or less than before. */
  set(shiftMs: number): void {
    this.#shiftMs = shiftMs
    this.#frozenMs = null
    this.#write()
  }

  /** Stands still at this time from now on. */
  freeze(ms: number): void {
    this.#frozenMs = ms
    this.#write()
  }

  #write(): void {
    const bytes = Buffer.alloc(16)
    bytes.writeBigInt64LE(micros(this.#shiftMs), 0)
    bytes.writeBigInt64LE(micros(this.#frozenMs ?? 0), 8)
    // Written over and never shortened: the servers have it mapped.
    writeSync(this.#file, bytes, 0, bytes.length, 0)
  }

  /** When the servers have ended. */
  async remove(): Promise<void> {
    closeSync(this.#file)
    await this.#folder.remove()
  }
}

const micros = (ms: number): bigint => BigInt(Math.round(ms * 1000))
