/**
 * Bounds what a handler writes to its standard output and error, which go to those of the main process: one that floods must not fill
 * a disk or hold up the main loop. The same for messages of its own to the main thread, which nobody there wants. Used by
 * `handler-worker.ts` and `handler-process.ts`; what goes around the streams of Node is bounded from outside where it can be, in
 * `src/actors/output-tap.ts`.
 */
import type { MessagePort } from 'node:worker_threads'

/** For each attempt, both streams together. */
const BYTES_MAX = 64 * 1024
const NOTE = `\n[the rest of what this attempt writes is left out: over ${BYTES_MAX} bytes]\n`

/** For each attempt. */
const MESSAGES_MAX = 1_000

let bytes = 0
let messages = 0

/** A new attempt: it may write as much as the one before. */
export function beginOutput(): void {
  bytes = 0
  messages = 0
}

const sizeOf = (chunk: unknown): number =>
  typeof chunk === 'string' ? Buffer.byteLength(chunk) : ArrayBuffer.isView(chunk) ? chunk.byteLength : 0

function cap(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean
  const capped = (chunk: unknown, ...rest: unknown[]): boolean => {
    const before = bytes
    bytes += sizeOf(chunk)
    if (bytes <= BYTES_MAX) return write(chunk, ...rest)
    const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined
    if (before > BYTES_MAX) {
      if (done !== undefined) process.nextTick(done)
      return true
    }
    const whole = typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk as Uint8Array)
    write(whole.subarray(0, BYTES_MAX - before))
    return done === undefined ? write(NOTE) : write(NOTE, done)
  }
  stream.write = capped as typeof stream.write
}

export function capOutput(): void {
  cap(process.stdout)
  cap(process.stderr)
}

/** Messages beyond the limit are dropped. */
export function capMessages(port: MessagePort): void {
  const post = port.postMessage.bind(port) as (...args: unknown[]) => void
  const capped = (...args: unknown[]): void => {
    messages += 1
    if (messages <= MESSAGES_MAX) post(...args)
  }
  port.postMessage = capped
}
