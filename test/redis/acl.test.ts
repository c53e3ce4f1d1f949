/** A user with exactly the commands and keys that the documentation lists can do everything, and needs each of them. */

import { connect, defineJob, handle } from 'holdfast'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { aclRules, CONDITIONAL, redisCommands } from '../../scripts/redis-commands.mjs'
import { eventually, rejection } from '../support/event.ts'
import { claimOne, complete, put, settle } from '../support/protocol.ts'
import { RedisServer } from '../support/redis-server.ts'
import { silent } from '../support/silent.ts'
import { job, openBackend, wholeLife } from './support.ts'

/** SELECT is in use here: the tests are in database 1. */
const NEEDED: readonly string[] = redisCommands().filter(
  (name) => name === 'select' || !Object.hasOwn(CONDITIONAL, name),
)
const NAMESPACE = 'acl'

let server: RedisServer
let url: string

beforeAll(async () => {
  server = await RedisServer.start()
  url = `redis://holdfast:secret@127.0.0.1:${server.port}/1`
})
afterAll(() => server.stop())

async function permit(commands: readonly string[]): Promise<void> {
  const rules = `reset on >secret ${aclRules(NAMESPACE, commands)}`
  await server.command('ACL', 'SETUSER', 'holdfast', ...rules.split(' '))
  await server.command('ACL', 'LOG', 'RESET')
  await server.command('FLUSHALL')
  await server.command('SCRIPT', 'FLUSH')
}

/** What was refused, but for the setting that the store only looks at. */
async function denied(): Promise<readonly string[]> {
  const log = (await server.command('ACL', 'LOG')) as readonly (readonly unknown[])[]
  return log.map((entry) => String(entry[entry.indexOf('object') + 1])).filter((name) => name !== 'config|get')
}

/** Wake-ups: a wait, one that is widened, and the token of another process. */
async function wakeUps(waiting: RedisBackend, telling: RedisBackend, name: string): Promise<void> {
  const heard: (string | null)[] = []
  const subscription = waiting.subscribe(['mail'], (lane) => heard.push(lane))
  const other = waiting.subscribe(['other'], (lane) => heard.push(lane))
  subscription.want(true)
  const isDone = async (condition: () => boolean) => condition() || (await denied()).length > 0
  await eventually(() => isDone(() => subscription.isReliable), 'a blocking wait')
  other.want(true)
  await telling.call('job.enqueue', { jobs: [{ ...job(`${name}-w`), id: `other/${name}-w`, lane: 'other' }] })
  await eventually(() => isDone(() => heard.includes('other')), 'a wake-up')
  subscription.stop()
  other.stop()
}

/** Somebody waits for ends, and is told of one by another process. */
async function ends(waiting: RedisBackend, telling: RedisBackend, name: string): Promise<void> {
  let heard = 0
  const stop = waiting.awaitEnds('mail', () => {
    heard += 1
  })
  // What is told when it begins to listen counts as heard as well.
  for (let round = 0; heard < 2 && (await denied()).length === 0; round += 1) {
    await put(telling, { id: `mail/${name}-e${round}`, lane: 'mail' })
    await settle(telling, complete(await claimOne(telling, { lanes: ['mail'] })))
  }
  stop()
}

async function everything(): Promise<void> {
  const backend = await openBackend(url, NAMESPACE)
  try {
    const other = await openBackend(url, NAMESPACE)
    try {
      await wholeLife(backend, 'one')
      // All that waits is cancelled: the order that is empty then is deleted.
      await backend.call('job.enqueue', { jobs: [{ ...job('z'), id: 'z/1', lane: 'z' }] })
      await backend.call('job.cancel', { ids: ['z/1'], force: false, keepMs: 0 })
      await wakeUps(backend, other, 'one')
      await ends(backend, other, 'one')
    } finally {
      await other.close()
    }
  } finally {
    await backend.close()
  }
}

test('the list has no command that Redis calls dangerous but INFO', async () => {
  const dangerous = (await server.command('ACL', 'CAT', 'dangerous')) as readonly Buffer[]
  const names = new Set(dangerous.map(String))
  expect(redisCommands().filter((name) => names.has(name) && !name.startsWith('cluster|'))).toEqual(['info'])
})

describe('a user with exactly these commands', () => {
  test('can do all there is to do, after SCRIPT FLUSH and a lost connection too', async () => {
    await permit(NEEDED)
    await everything()
    await server.command('SCRIPT', 'FLUSH')
    const backend = await openBackend(url, NAMESPACE)
    await wholeLife(backend, 'two')
    await server.command('SCRIPT', 'FLUSH')
    await wholeLife(backend, 'three')
    await server.command('CLIENT', 'KILL', 'USER', 'holdfast')
    await eventually(() => backend.call('store.health', {}).catch(() => null), 'a new connection')
    await wholeLife(backend, 'four')
    await backend.close()
    expect(await denied()).toEqual([])
  })

  test('does not see how often the server flushes, and is told so', async () => {
    await permit(NEEDED)
    const backend = await openBackend(url, NAMESPACE)
    const { details } = await backend.call('store.health', {})
    await backend.close()
    expect(details.appendFsync).toBe('unknown')
  })

  test('runs a worker', async () => {
    await permit(NEEDED)
    const hf = await connect(url, { namespace: NAMESPACE, logger: silent })
    const double = defineJob<number, number>('double')
    await hf.worker({ handlers: [handle(double, (n) => n * 2)] })
    expect(await (await hf.enqueue(double, 21)).result({ timeout: '5s' })).toBe(42)
    await hf.close()
    expect(await denied()).toEqual([])
  })

  test('cannot touch another namespace', async () => {
    await permit(NEEDED)
    for (const namespace of ['other', 'acl2', 'acl.b', 'ac']) {
      const error = await rejection(openBackend(url, namespace))
      expect([namespace, error.code]).toEqual([namespace, 'STORE_DENIED'])
    }
  })

  test.each(NEEDED)('needs %s', async (name) => {
    await permit(NEEDED.filter((each) => each !== name))
    const failed = await everything().then(
      () => null,
      (error: Error & { code?: string }) => error.code,
    )
    expect(await eventually(async () => (await denied()).at(-1) ?? false, `a refusal of ${name}`)).toBe(name)
    // Hints: without them a poll finds what there is.
    if (!['blpop', 'pexpire', 'publish', 'subscribe'].includes(name)) expect(failed).toBe('STORE_DENIED')
  })
})
