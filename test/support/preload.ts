/**
 * Builds the C sources that tests load into servers by LD_PRELOAD. The result is kept under `node_modules/.cache` by the hash of
 * its source, so that it is built once; builds at the same time do not disturb each other, as each is renamed into place.
 */
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runInContainer } from './container.ts'
import { service } from './services.ts'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-test/', import.meta.url))
const FLAGS = ['-O2', '-Wall', '-Wextra', '-shared', '-fPIC'] as const

/** The path of the library made from a source beside the caller. */
export async function buildPreload(source: URL): Promise<string> {
  if (process.platform !== 'linux') throw new Error('the clock and the power cut of a server need Linux (LD_PRELOAD)')
  const path = fileURLToPath(source)
  const hash = createHash('sha256')
    .update(await readFile(path))
    .update(`${FLAGS.join(' ')} ${process.arch}`)
    .digest('hex')
    .slice(0, 16)
  const library = join(CACHE, `${basename(path, '.c')}-${hash}.so`)
  if (existsSync(library)) return library
  await mkdir(CACHE, { recursive: true })
  const made = `${library}.${randomUUID()}`
  await compile([...FLAGS, '-o', made, path, '-ldl', '-lpthread'], dirname(path))
  await rename(made, library)
  return library
}

async function compile(args: readonly string[], sources: string): Promise<void> {
  const place = await service('compiler')
  if (place.kind === 'local') await promisify(execFile)(place.program, args)
  else await runInContainer(place.image, { program: 'cc', args, folder: CACHE, env: { SOURCES: `${sources}/.` } })
}

/** What a process must be started with to load these libraries, for `env` of a server. */
export function preloadEnvironment(
  ...parts: readonly { readonly env: Readonly<Record<string, string>> }[]
): Record<string, string> {
  const libraries = parts.flatMap(({ env }) => env.LD_PRELOAD ?? [])
  return { ...Object.assign({}, ...parts.map(({ env }) => env)), LD_PRELOAD: libraries.join(':') }
}
