/**
 * Where threads and processes of Holdfast begin: one file for all of them, `holdfast-worker.js`. It is looked for beside this one, which
 * in a bundled application is beside the bundle: there it is a further entry point of the bundler, with the ending of the bundle.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { HoldfastError } from './errors.ts'

/** As what a thread or a process begins; its first argument. */
export type WorkerRole = 'handler-worker' | 'handler-process' | 'lease-keeper' | 'parent-watch' | 'sqlite-store'

/** The URL of this file, or of the bundle that it has become a part of. A bundle in CommonJS has no `import.meta`. */
export const HERE: string = import.meta.url ?? pathToFileURL(__filename).href

let found: string | null = null

/**
 * The path of that file. Throws DEPENDENCY_MISSING when it is not there; once it was, never again: a thread or process that is started in
 * place of another finds out for itself, where somebody hears of it, when the file was taken away meanwhile, such as by a deployment.
 */
export function workerFile(): string {
  if (found !== null) return found
  const ending = /\.[cm]?js$/.exec(new URL(HERE).pathname)?.[0] ?? '.js'
  const path = fileURLToPath(new URL(`./holdfast-worker${ending}`, HERE))
  if (existsSync(path)) {
    found = path
    return path
  }
  throw new HoldfastError(
    'DEPENDENCY_MISSING',
    `${path} does not exist: threads and processes of Holdfast begin there. A bundle needs 'holdfast/worker' as a further entry point named 'holdfast-worker'; see docs/bundling.md`,
    { details: { dependency: 'holdfast/worker', path, outcome: 'refused' } },
  )
}
