/** What a test of faults on Redis needs, all of it gone at its end, and what it counts there. */
import { join } from 'node:path'
import type { Holdfast, WorkerOptions } from 'holdfast'
import { ServerClock } from '../support/clock/server-clock.ts'
import { RedisServer, type RedisServerOptions } from '../support/redis-server.ts'
import { ServerFolder } from '../support/server-process.ts'
import { Stage } from '../support/stage.ts'
import { Dumper } from './dump.ts'
import { recount } from './recount.ts'

/** Quick enough that a lost lease is seen within a second. */
export const QUICK = { lease: 600, reap: 100, poll: 100 } as const satisfies Partial<WorkerOptions>

export class RedisStage extends Stage {
  async server(options: RedisServerOptions = {}): Promise<RedisServer> {
    const server = await RedisServer.start({ appendOnly: true, appendFsync: 'always', ...options })
    this.defer(() => server.stop())
    return server
  }

  async clock(): Promise<ServerClock> {
    const clock = await ServerClock.make()
    this.defer(() => clock.remove())
    return clock
  }

  /** A file of its own folder. */
  async file(name: string): Promise<string> {
    const folder = await ServerFolder.make('stage')
    this.defer(() => folder.remove())
    return join(folder.path, name)
  }
}

/** Of jobs that should all have been done: those that were not, and those that ran more often than their grants explain. */
export async function unexplained(
  hf: Holdfast,
  ids: readonly string[],
  ran: readonly string[],
): Promise<readonly string[]> {
  const found: string[] = []
  for (const id of ids) {
    const [job, attempts] = await Promise.all([hf.get(id), hf.attempts(id)])
    const runs = ran.filter((each) => each === id).length
    if (job?.state !== 'completed') found.push(`${id} is ${job?.state ?? 'absent'}`)
    if (runs < 1 || runs > attempts.length) found.push(`${id} ran ${runs} times, was granted ${attempts.length} times`)
    const earlier = attempts.slice(0, -1).filter(({ outcome }) => outcome !== 'crashed')
    if (earlier.length > 0) found.push(`${id} was granted again after ${earlier[0]?.outcome}`)
  }
  return found
}

/** What a recount of all keys of a namespace finds wrong; empty: nothing. */
export async function miscounts(server: { readonly port: number }, namespace: string): Promise<readonly string[]> {
  const dumper = new Dumper(server.port)
  try {
    return recount(await dumper.dump(namespace), namespace)
  } finally {
    dumper.close()
  }
}
