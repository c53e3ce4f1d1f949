/** Runs the command line as users do, in a process of its own, and gives back its exit code and both streams. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { dispatch } from '#dist/src/cli/dispatch.js'

const DIST = process.env.HOLDFAST_DIST ?? fileURLToPath(new URL('../../dist', import.meta.url))
export const MAIN = join(DIST, 'src/cli/main.js')

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: string
}

export interface CliRun {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliProcess {
  readonly child: ChildProcess
  readonly ended: Promise<CliRun>
  /** Resolves when a stream has said `text`; rejects when the process ends without. */
  said(text: string): Promise<void>
}

/** Without the variables of the test run itself, which the command line would read. */
function environment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { HOLDFAST_URL: _url, HOLDFAST_LOG: _log, NO_COLOR: _colour, FORCE_COLOR: _force, ...rest } = process.env
  return { ...rest, ...extra }
}

export function startNode(args: readonly string[], options: CliOptions = {}): CliProcess {
  const child = spawn(process.execPath, args, { cwd: options.cwd, env: environment(options.env), stdio: 'pipe' })
  let stdout = ''
  let stderr = ''
  const listeners = new Set<() => void>()
  const heard = (): void => {
    for (const listener of listeners) listener()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    heard()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    heard()
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const ended = new Promise<CliRun>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  const said = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const listener = (): void => {
        if (!stdout.includes(text) && !stderr.includes(text)) return
        listeners.delete(listener)
        resolve()
      }
      listeners.add(listener)
      listener()
      void ended.then((run) => reject(new Error(`ended without saying ${text}: ${JSON.stringify(run)}`)))
    })
  return { child, ended, said }
}

export const startCli = (args: readonly string[], options?: CliOptions): CliProcess =>
  startNode([MAIN, ...args], options)

export const runCli = (args: readonly string[], options?: CliOptions): Promise<CliRun> => startCli(args, options).ended

/** Runs a command with `--json`, expects it to succeed and parses what it printed. */
export async function runJson<T>(args: readonly string[], options?: CliOptions): Promise<T> {
  const { code, stdout, stderr } = await runCli([...args, '--json'], options)
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}

/** A folder that is removed when the tests of the file are over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs a command in this process, which spares the start of another; for what ends before any signal or input matters. */
export async function runInProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Omit<CliRun, 'signal'>> {
  let stdout = ''
  let stderr = ''
  const code = await dispatch(args, {
    env,
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
  })
  return { code, stdout, stderr }
}
