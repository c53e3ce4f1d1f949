/**
 * One process of a test server on this machine. A small shell watches over it: when the test process ends, however it ends, the
 * pipe to that shell closes, and the shell kills the server by its pid, with all that it started, and removes its folder.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signalChild, signalTree, type TreeSignal } from './process-tree.ts'

export type ProcessSignal = 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | TreeSignal

/** Whom a program runs as. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

export interface ServerCommand {
  readonly program: string
  readonly args: readonly string[]
  /** Where it runs and where its words go. */
  readonly folder: ServerFolder
  readonly logPath: string
  readonly env: Readonly<Record<string, string>>
  /** Default: the one that runs the tests. */
  readonly account?: Account
}

export interface ServerProcess {
  readonly pid: number
  readonly hasExited: boolean
  readonly exited: Promise<void>
  signal(name: ProcessSignal): Promise<void>
  /** To it and to all that it has started; resolves when that has taken effect. */
  signalAll(name: TreeSignal): Promise<void>
  /** To one that it has started, by the pid that the server gives for it. */
  signalChild(pid: number, name: ProcessSignal): Promise<void>
}

/** How a server comes to run: as a process of this machine, or in a container. */
export type Launch = (command: ServerCommand) => Promise<ServerProcess>

// Reads the pid that now runs, line by line ('' for none); at the end of its input the test process is gone or done. What a
// server started may be stopped or busy, and would not notice the end of its server for long.
const WATCH = `
  folder=$1; farewell=$2; pid=
  while read -r next; do pid=$next; done
  children() {
    if [ ! -r /proc/self/stat ]; then ps -A -o pid= -o ppid= | awk -v pid="$pid" '$2 == pid { print $1 }'; return; fi
    for stat in /proc/[0-9]*/stat; do
      read -r line <"$stat" || continue
      number=\${line%% *}
      set -- \${line##*) }
      [ "$2" != "$pid" ] || echo "$number"
    done
  }
  if [ -n "$pid" ]; then kill -STOP "$pid"; kill -9 $(children) "$pid"; fi
  cd "$folder" && eval "$farewell"
  cd / && { rm -rf -- "$folder" || { sleep 1; rm -rf -- "$folder"; }; }`

/** A temporary folder that is removed with everything that still runs in it. */
export class ServerFolder {
  readonly path: string
  readonly #watch: ChildProcess

  private constructor(path: string, farewell: string) {
    this.path = path
    this.#watch = spawn('sh', ['-c', WATCH, 'watch', path, farewell], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    this.#watch.stdin?.on('error', () => {}) // It is gone when the machine shuts down.
    if (this.#watch.stdin instanceof Socket) this.#watch.stdin.unref()
    this.#watch.unref()
  }

  /** `farewell` is what the shell does in the folder when the server is dead, before it removes the folder. */
  static async make(name: string, farewell = ''): Promise<ServerFolder> {
    return new ServerFolder(await mkdtemp(join(tmpdir(), `holdfast-${name}-`)), farewell)
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
export const launchLocally: Launch = async ({ program, args, folder, logPath, env, account }) => {
  const log = openSync(logPath, 'a')
  const child = spawn(program, args, {
    cwd: folder.path,
    env: { ...process.env, ...env },
    stdio: ['ignore', log, log],
    ...(isOther(account) ? account : {}),
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
    signalAll: async (name) => {
      if (hasExited) return
      child.ref()
      await signalTree(pid, name)
    },
    signalChild: (backend, name) => signalChild(pid, backend, name),
  }
}

/** Whether it must be given to what is started; only root may, and only root has to. */
export function isOther(account: Account | undefined): account is Account {
  return account !== undefined && account.uid !== process.getuid?.()
}
