/**
 * The handler of `demo.file`, loaded in handler threads: reads one file once and gives its SHA-256, sizes and counts.
 * A file that is gone or may not be read can never be digested, so that is a permanent error. Loads nothing but Node at first,
 * because every thread pays for it.
 */
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { finished } from 'node:stream/promises'
import { brotliCompressSync, constants, createBrotliCompress, createGzip, gzipSync } from 'node:zlib'
import type { JobContext } from '../../index.ts'
import type { FileInput } from './contracts.ts'
import { absolutePath } from './path.ts'

export interface FileDigest {
  readonly sha256: string
  readonly bytes: number
  readonly lines: number
  readonly words: number
  readonly gzipBytes: number
  readonly brotliBytes: number
}

/** Below this a file is read whole; above, memory would grow with it. */
const WHOLE_BYTES_MAX = 4 * 1024 * 1024
/** 11, the default, takes 20 times as long for a tenth less. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
const HOPELESS = new Set(['ENOENT', 'EACCES', 'EPERM', 'EISDIR', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO'])

export default async function digestFile(input: FileInput, context: JobContext): Promise<FileDigest> {
  const path = absolutePath(input.folder, input.raw ?? input.path)
  try {
    return statSync(path).size <= WHOLE_BYTES_MAX ? digestWhole(path) : await digestStream(path, context.signal)
  } catch (error) {
    if (error instanceof Error && 'code' in error && HOPELESS.has(String(error.code))) {
      const { PermanentError } = await import('../../index.ts')
      throw new PermanentError(`${input.path} cannot be read: ${String(error.code)}`, { cause: error })
    }
    throw error
  }
}

function digestWhole(path: string | Buffer): FileDigest {
  const content = readFileSync(path)
  const counter = new TextCounter()
  counter.add(content)
  return {
    sha256: createHash('sha256').update(content).digest('hex'),
    bytes: content.length,
    lines: counter.lines,
    words: counter.words,
    gzipBytes: gzipSync(content).length,
    brotliBytes: brotliCompressSync(content, BROTLI).length,
  }
}

async function digestStream(path: string | Buffer, signal: AbortSignal): Promise<FileDigest> {
  const hash = createHash('sha256')
  const counter = new TextCounter()
  const gzip = new Compressed(createGzip())
  const brotli = new Compressed(createBrotliCompress(BROTLI))
  let bytes = 0
  for await (const chunk of createReadStream(path, { signal, highWaterMark: 256 * 1024 })) {
    const part = chunk as Buffer
    hash.update(part)
    counter.add(part)
    bytes += part.length
    await Promise.all([gzip.add(part), brotli.add(part)])
  }
  const [gzipBytes, brotliBytes] = await Promise.all([gzip.end(), brotli.end()])
  return { sha256: hash.digest('hex'), bytes, lines: counter.lines, words: counter.words, gzipBytes, brotliBytes }
}

/** Counts what comes out of a compressor and waits when it is behind. */
class Compressed {
  readonly #stream: ReturnType<typeof createGzip> | ReturnType<typeof createBrotliCompress>
  #bytes = 0

  constructor(stream: ReturnType<typeof createGzip> | ReturnType<typeof createBrotliCompress>) {
    this.#stream = stream
    stream.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.length
    })
  }

  async add(chunk: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#stream.write(chunk, (error) => (error ? reject(error) : resolve()))
    })
  }

  async end(): Promise<number> {
    this.#stream.end()
    await finished(this.#stream)
    return this.#bytes
  }
}

const NEWLINE = 10
const isBlank = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13)

/** Counts as `wc` does in the C locale: lines are newlines, words are runs of bytes without white space. */
class TextCounter {
  lines = 0
  words = 0
  #isInWord = false

  add(chunk: Buffer): void {
    for (const byte of chunk) {
      if (byte === NEWLINE) this.lines += 1
      const isBlankNow = isBlank(byte)
      if (this.#isInWord && isBlankNow) this.#isInWord = false
      else if (!this.#isInWord && !isBlankNow) {
        this.#isInWord = true
        this.words += 1
      }
    }
  }
}
