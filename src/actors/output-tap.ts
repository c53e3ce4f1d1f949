/**
 * What a handler process writes to its standard output and error goes on to those of this process. It bounds itself; the limit here is for
 * what goes around the streams of its Node, such as programs that a handler starts. The end of its standard error is kept, since that
 * is where a process says why it aborts. Owned by `handler-process.ts`.
 */
import type { Readable } from 'node:stream'

/** For each attempt, both streams together; some of it may be of the attempt before, which is still on its way. */
const BYTES_MAX = 256 * 1024
const TAIL_CHARS = 4_096

export class OutputTap {
  #tail = ''
  #bytes = 0

  constructor(stdout: Readable | null, stderr: Readable | null) {
    stdout?.on('data', (chunk: Buffer) => this.#pass(chunk, process.stdout))
    stderr?.on('data', (chunk: Buffer) => {
      this.#tail = (this.#tail + chunk.toString('latin1')).slice(-TAIL_CHARS)
      this.#pass(chunk, process.stderr)
    })
  }

  get tail(): string {
    return this.#tail
  }

  /** A new attempt: it may write as much as the one before. */
  begin(): void {
    this.#bytes = 0
  }

  #pass(chunk: Buffer, to: NodeJS.WriteStream): void {
    const left = BYTES_MAX - this.#bytes
    if (left <= 0) return
    this.#bytes += chunk.length
    to.write(chunk.length <= left ? chunk : chunk.subarray(0, left))
    if (chunk.length >= left)
      to.write(`\n[the rest of what this attempt writes is left out: over ${BYTES_MAX} bytes]\n`)
  }
}
