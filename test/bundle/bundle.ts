/** Bundles the app beside this file as docs/bundling.md says, into a folder that has nothing else, and runs it there. */
import { cpSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { startNode } from '../support/cli.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const APP = fileURLToPath(new URL('./app/', import.meta.url))
export const DIST = process.env.HOLDFAST_DIST ?? join(ROOT, 'dist')

/** The recipes of docs/bundling.md, word for word. */
export const RECIPES = {
  esm: {
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    banner: {
      js: "import { createRequire as createRequireOf } from 'node:module'; const require = createRequireOf(import.meta.url)",
    },
  },
  cjs: {
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    define: { 'import.meta.url': 'importMetaUrl' },
    banner: { js: "const importMetaUrl = require('node:url').pathToFileURL(__filename).href" },
  },
} as const satisfies Readonly<Record<string, BuildOptions>>

/** A project with the app and the package as a user has installed it; gives the folder of its sources. */
export function makeProject(folder: string): string {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'holdfast'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(modules, 'holdfast/package.json'))
  symlinkSync(DIST, join(modules, 'holdfast/dist'))
  cpSync(APP, join(folder, 'src'), { recursive: true })
  return folder
}

export interface Bundling {
  readonly project: string
  readonly outdir: string
  readonly options: BuildOptions
}

export async function bundle({ project, outdir, options }: Bundling): Promise<void> {
  const { warnings } = await build({
    absWorkingDir: project,
    entryPoints: { app: 'src/app.ts', handler: 'src/handler.ts', 'holdfast-worker': 'holdfast/worker' },
    outdir,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20',
    logLevel: 'silent',
    ...options,
  })
  if (warnings.length > 0) throw new Error(JSON.stringify(warnings))
}

/** What no bundle can hold: a native driver, and the pool that starts threads with a file of its own. */
export function installBeside(folder: string, packages: readonly string[]): void {
  for (const name of packages) {
    const path = join(folder, 'node_modules', name)
    cpSync(realpathSync(join(ROOT, 'node_modules', name)), path, { recursive: true })
    const { dependencies = {} } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as {
      readonly dependencies?: Readonly<Record<string, string>>
    }
    // What only builds the driver does not run.
    installBeside(
      folder,
      Object.keys(dependencies).filter((each) => each !== 'prebuild-install'),
    )
  }
}

/** Runs a bundle and gives what it said; a process that says anything else, or ends otherwise, is refused. */
export async function runBundle(file: string, env: Readonly<Record<string, string>>): Promise<unknown> {
  const { code, stdout, stderr } = await startNode([file], { cwd: dirname(dirname(file)), env }).ended
  if (code !== 0 || stderr !== '') throw new Error(`${file} ended with ${code}: ${stdout}${stderr}`)
  return JSON.parse(stdout)
}
