/**
 * The log lines of one handler thread on their way to the main thread. A line is sent at once, so that the last one before the
 * thread dies arrives, while less than a window of them waits there to be taken; the main thread counts in shared memory those it
 * took, which a handler that never yields can read. What comes beyond that is held here, the newest lines, and sent when there is
 * room again or the attempt ends; lines among them say how many were left out. So a handler that logs without
 * end takes neither the time nor the memory of the main thread.
 */
import type { LoggedLine } from '../src/log-fields.ts'
import type { LogLevel } from './handler-protocol.ts'

/** Lines that the main thread has not taken: it is held up by these for about 10 ms. */
const WINDOW = 500
/** As many as a job may keep, `LIMITS.keepLogs`. */
const HELD_MAX = 1_000
const HELD_BYTES_MAX = 1_000_000
/** A held line that nothing else sends waits about so long for room. */
const LOOK_EVERY_MS = 20
/** Least time between two lines that say how many were left out, but for the last one of an attempt. */
const TELL_EVERY_MS = 1_000

export interface Line extends LoggedLine {
  readonly level: LogLevel
}

export class LogWindow {
  readonly #taken: Int32Array
  readonly #send: (line: Line) => void
  #sent = 0
  #held: Line[] = []
  #heldBytes = 0
  #leftOut = 0
  #toldAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /** `taken`: one number, which the main thread adds to. */
  constructor(taken: Int32Array, send: (line: Line) => void) {
    this.#taken = taken
    this.#sent = Atomics.load(taken, 0)
    this.#send = send
  }

  write(line: Line): void {
    if (this.#held.length > 0) this.#release()
    if (this.#held.length === 0 && this.#room > 0) this.#post(line)
    else this.#hold(line)
  }

  /** Sends all that is held, room or not: the attempt ends, or the thread. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#trim()
    this.#tellLeftOut()
    for (const line of this.#held.splice(0)) this.#post(line)
    this.#heldBytes = 0
  }

  /** The counts go round at 2^32. */
  get #room(): number {
    return WINDOW - ((this.#sent - Atomics.load(this.#taken, 0)) | 0)
  }

  #post(line: Line): void {
    this.#sent = (this.#sent + 1) | 0
    this.#send(line)
  }

  #hold(line: Line): void {
    this.#held.push(line)
    this.#heldBytes += line.size
    // Not at every line: the array would be copied each time.
    if (this.#held.length >= HELD_MAX * 2 || this.#heldBytes >= HELD_BYTES_MAX * 2) this.#trim()
    this.#timer ??= setTimeout(() => this.#look(), LOOK_EVERY_MS).unref()
  }

  /** Keeps the newest. */
  #trim(): void {
    let [from, bytes] = [this.#held.length, 0]
    while (from > 0 && this.#held.length - from < HELD_MAX) {
      const size = this.#held[from - 1]?.size ?? 0
      if (bytes + size > HELD_BYTES_MAX) break
      bytes += size
      from -= 1
    }
    this.#leftOut += from
    this.#held = this.#held.slice(from)
    this.#heldBytes = bytes
  }

  #look(): void {
    this.#timer = undefined
    this.#release()
    if (this.#held.length > 0) this.#timer = setTimeout(() => this.#look(), LOOK_EVERY_MS).unref()
  }

  /** The oldest first, as many as there is room for. */
  #release(): void {
    const room = this.#room
    if (room <= 1) return
    this.#trim()
    const isDue = this.#leftOut > 0 && performance.now() - this.#toldAt >= TELL_EVERY_MS
    if (isDue) this.#tellLeftOut()
    const lines = this.#held.splice(0, isDue ? room - 1 : room)
    for (const line of lines) {
      this.#heldBytes -= line.size
      this.#post(line)
    }
  }

  #tellLeftOut(): void {
    if (this.#leftOut === 0) return
    const fields = { left_out: this.#leftOut }
    this.#leftOut = 0
    this.#toldAt = performance.now()
    this.#post({
      level: 'warn',
      fields,
      message: 'the handler logs faster than its lines are taken; some were left out',
      size: 0,
    })
  }
}
