/**
 * Servers and tools of tests in containers, for machines without the programs. A container runs as our user in the network of the
 * host and sees the folders of the test at the same paths, so that it differs little from a process.
 */
import { createWriteStream } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import type { Launch, ServerCommand } from './server-process.ts'

const PULL_AND_START_MS = 180_000

/** Every folder that a path in the variables names, beside the server's own. */
function mounts({ folder, env }: Pick<ServerCommand, 'env'> & { readonly folder: string }) {
  const paths = Object.values(env)
    .flatMap((value) => value.split(':'))
    .filter((value) => value.startsWith('/'))
  return [...new Set([folder, ...paths.map(dirname)])].map((path) => ({ source: path, target: path }))
}

async function containerOf(image: string, { program, args, env, folder }: Tool) {
  const { GenericContainer } = await import('testcontainers')
  const { uid, gid } = userInfo()
  return new GenericContainer(image)
    .withEntrypoint([program])
    .withCommand([...args])
    .withEnvironment({ ...env })
    .withBindMounts(mounts({ folder, env }))
    .withWorkingDir(folder)
    .withNetworkMode('host')
    .withUser(`${uid}:${gid}`)
    .withStartupTimeout(PULL_AND_START_MS)
}

export interface Tool {
  readonly program: string
  readonly args: readonly string[]
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

/** Runs a tool to its end; rejects when it fails. */
export async function runInContainer(image: string, tool: Tool): Promise<void> {
  const { Wait } = await import('testcontainers')
  const container = await containerOf(image, tool)
  await (await container.withWaitStrategy(Wait.forOneShotStartup()).start()).stop()
}

export const launchInContainer =
  (image: string): Launch =>
  async ({ program, args, folder, logPath, env }) => {
    const { getContainerRuntimeClient } = await import('testcontainers')
    const container = await containerOf(image, { program, args, env, folder: folder.path })
    const started = await container
      .withLogConsumer((stream) => stream.pipe(createWriteStream(logPath, { flags: 'a' })))
      .start()
    const { container: client } = await getContainerRuntimeClient()
    const handle = client.getById(started.getId())
    const { State: state } = await handle.inspect()
    let hasExited = false
    const exited = handle.wait().then(async () => {
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
    }
  }
