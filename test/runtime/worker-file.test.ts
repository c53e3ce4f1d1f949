/** The file in which threads and processes begin: missing from the start it is told, taken away later it ends no worker. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, expect, it } from 'vitest'

const root = mkdtempSync(join(tmpdir(), 'holdfast-worker-file-'))
afterEach(() => rmSync(root, { recursive: true, force: true }))

it('is looked for until it was found, and no more', async () => {
  const dist = join(root, 'src')
  mkdirSync(dist, { recursive: true })
  writeFileSync(join(root, 'package.json'), '{"type":"module"}')
  const built = process.env.HOLDFAST_DIST ?? fileURLToPath(new URL('../../dist', import.meta.url))
  for (const name of ['worker-file.js', 'errors.js']) cpSync(join(built, 'src', name), join(dist, name))
  const { workerFile } = (await import(
    pathToFileURL(join(dist, 'worker-file.js')).href
  )) as typeof import('#dist/src/worker-file.js')
  expect(workerFile).toThrow(expect.objectContaining({ code: 'DEPENDENCY_MISSING' }))
  const file = join(dist, 'holdfast-worker.js')
  writeFileSync(file, '')
  expect(workerFile()).toBe(file)
  rmSync(file)
  expect(workerFile()).toBe(file)
})
