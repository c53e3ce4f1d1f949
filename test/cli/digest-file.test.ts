/** The handler of the demo's file jobs by itself: small and large files alike, and files that are gone. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JobContext } from 'holdfast'
import { describe, expect, it } from 'vitest'
import digestFile from '#dist/src/cli/demo/digest-file.js'
import { temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
const context = { signal: new AbortController().signal } as JobContext
const digest = (path: string) => digestFile({ folder, path, raw: null }, context)

describe('digest of a file', () => {
  it.each([
    ['empty.txt', '', 0, 0],
    ['words.txt', '  one\ttwo\r\n\nthree', 2, 3],
    ['bytes.bin', '\u0000\u0001 \u00ff', 0, 2],
    // Larger than what is read whole, so that words and lines are counted across chunks.
    ['large.txt', 'some words in a line\n'.repeat(250_000), 250_000, 1_250_000],
  ])('%s', async (name, content, lines, words) => {
    const bytes = Buffer.from(content, 'latin1')
    writeFileSync(join(folder, name), bytes)
    const result = await digest(name)
    expect(result).toMatchObject({ bytes: bytes.length, lines, words })
    expect(result.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(result.gzipBytes).toBeGreaterThan(0)
    expect(result.brotliBytes).toBeGreaterThan(0)
    if (bytes.length > 1_000) expect(result.gzipBytes + result.brotliBytes).toBeLessThan(bytes.length / 10)
  })

  it('of a file that is gone, or is no file, is a permanent error', async () => {
    mkdirSync(join(folder, 'inner'))
    await expect(digest('gone.txt')).rejects.toMatchObject({
      permanent: true,
      message: 'gone.txt cannot be read: ENOENT',
    })
    await expect(digest('inner')).rejects.toMatchObject({ permanent: true, message: 'inner cannot be read: EISDIR' })
  })
})
