/**
 * Servers and tools of tests in containers, for machines without the programs. A container runs as our user in the network of the
 * host and sees the folders of the test at the same paths, so that it differs little from a process.
 */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { createRequire } from 'node:module'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import { within } from './event.ts'
import type { Account, Launch, ServerCommand } from './server-process.ts'

const PULL_AND_START_MS = 180_000
const LAST_WORDS_MS = 2000

/** Loaded when needed, as it takes a while; not by `import()`, which fails once a module runner has been closed. */
export const containers = (): typeof import('testcontainers') => createRequire(import.meta.url)('testcontainers')

/** Every folder that a path in the variables names, beside the server's own. */
function mounts({ folder, env }: Pick<ServerCommand, 'env'> & { readonly folder: string }) {
  const paths = Object.values(env)
    .flatMap((value) => value.split(':'))
    .filter((value) => value.startsWith('/'))
  return [...new Set([folder, ...paths.map(dirname)])].map((path) => ({ source: path, target: path }))
}

/** Images know no user of ours by name, and some programs ask for the name. */
const namesOf = ({ uid, gid }: Account): string => `root:x:0:0::/:/bin/sh\nholdfast:x:${uid}:${gid}::/:/bin/sh\n`

function containerOf(image: string, { program, args, env, folder, account }: Tool) {
  const { GenericContainer } = containers()
  const { uid, gid } = account ?? userInfo()
  const names = account === undefined ? [] : [{ content: namesOf(account), target: '/etc/passwd' }]
  return new GenericContainer(image)
    .withCopyContentToContainer(names)
    .withEntrypoint([program])
    .withCommand([...args])
    .withEnvironment({ ...env })
    .withBindMounts(mounts({ folder, env }))
    .withWorkingDir(folder)
    .withNetworkMode('host')
    .withUser(`${uid}:${gid}`)
    .withAutoRemove(false)
    .withStartupTimeout(PULL_AND_START_MS)
}

export interface Tool {
  readonly program: string
  readonly args: readonly string[]
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  readonly account?: Account
}

/** Runs a tool to its end; rejects when it fails. */
export async function runInContainer(image: string, tool: Tool): Promise<void> {
  const { Wait } = containers()
  const ended = await containerOf(image, tool).withWaitStrategy(Wait.forOneShotStartup()).start()
  await ended.stop({ remove: true })
}

export const launchInContainer =
  (image: string): Launch =>
  async ({ program, args, folder, logPath, env, account }) => {
    const owned = account === undefined ? {} : { account }
    const container = containerOf(image, { program, args, env, folder: folder.path, ...owned })
    const log = createWriteStream(logPath, { flags: 'a' })
    const isLogged = once(log, 'finish')
    const started = await container.withLogConsumer((stream) => stream.pipe(log)).start()
    const { container: client } = await containers().getContainerRuntimeClient()
    const handle = client.getById(started.getId())
    const { State: state } = await handle.inspect()
    let hasExited = false
    const exited = handle.wait().then(async () => {
      await within(isLogged, 'the last words of a container', LAST_WORDS_MS).catch(() => {})
      hasExited = true
      await handle.remove({ force: true })
    })
    return {
      pid: state.Pid,
      exited,
      get hasExited() {
        return hasExited
      },
      signal: async (name) => {
        if (!hasExited) await handle.kill({ signal: name })
      },
      // All that runs in the container; a frozen one takes no signal.
      signalAll: async (name) => {
        if (hasExited) return
        const { State: now } = await handle.inspect()
        if (name === 'SIGSTOP' && !now.Paused) await handle.pause()
        if (name !== 'SIGSTOP' && now.Paused) await handle.unpause()
        if (name === 'SIGKILL') await handle.kill({ signal: name })
      },
      signalChild: async (pid, name) => {
        const { exitCode, output } = await started.exec(['sh', '-c', `kill -${name.slice('SIG'.length)} ${pid}`])
        if (exitCode !== 0) throw new Error(`process ${pid} of a container took no ${name}: ${output}`)
      },
    }
  }
