/**
 * One process of a test server on this machine. A small shell watches over it: when the test process ends, however it ends, the
 * pipe to that shell closes, and the shell kills the server by its pid and removes its folder.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type ProcessSignal = 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'

export interface ServerCommand {
  readonly program: string
  readonly args: readonly string[]
  /** Where it runs and where its words go. */
  readonly folder: ServerFolder
  readonly logPath: string
  readonly env: Readonly<Record<string, string>>
}

export interface ServerProcess {
  readonly pid: number
  readonly hasExited: boolean
  readonly exited: Promise<void>
  signal(name: ProcessSignal): Promise<void>
}

/** How a server comes to run: as a process of this machine, or in a container. */
export type Launch = (command: ServerCommand) => Promise<ServerProcess>

// Reads the pid that now runs, line by line ('' for none); at the end of its input the test process is gone or done.
const WATCH =
  'pid=; while read -r next; do pid=$next; done; [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf -- "$1"'

/** A temporary folder that is removed with everything that still runs in it. */
export class ServerFolder {
  readonly path: string
  readonly #watch: ChildProcess

  private constructor(path: string) {
    this.path = path
    this.#watch = spawn('sh', ['-c', WATCH, 'watch', path], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    this.#watch.stdin?.on('error', () => {}) // It is gone when the machine shuts down.
    if (this.#watch.stdin instanceof Socket) this.#watch.stdin.unref()
    this.#watch.unref()
  }

  static async make(name: string): Promise<ServerFolder> {
    return new ServerFolder(await mkdtemp(join(tmpdir(), `holdfast-${name}-`)))
  }

  watch(pid: number | null): void {
    this.#watch.stdin?.write(`${pid ?? ''}\n`)
  }

  async remove(): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      this.#watch.once('exit', () => resolve())
      if (this.#watch.exitCode !== null) resolve()
    })
    this.#watch.ref()
    this.#watch.stdin?.end()
    await gone
  }
}

/** Runs a program of this machine. */
export const launchLocally: Launch = async ({ program, args, folder, logPath, env }) => {
  const log = openSync(logPath, 'a')
  const child = spawn(program, args, {
    cwd: folder.path,
    env: { ...process.env, ...env },
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  child.unref()
  let hasExited = false
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      hasExited = true
      folder.watch(null)
      resolve()
    })
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} has no pid`)
  folder.watch(pid)
  return {
    pid,
    exited,
    get hasExited() {
      return hasExited
    },
    signal: async (name) => {
      if (hasExited) return
      child.ref() // Whoever ends it waits for its end.
      child.kill(name)
    },
  }
}
