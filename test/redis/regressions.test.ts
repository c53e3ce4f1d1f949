/** What the Redis store once did otherwise than the memory store, as plain calls. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { claim, job } from '../sqlite/support.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Dumper } from './dump.ts'
import { openBackend } from './model-subject.ts'
import { recount } from './recount.ts'

let server: RedisServer

beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

async function withStore(use: (store: RedisBackend, namespace: string) => Promise<void>): Promise<void> {
  const namespace = `test-${randomBytes(6).toString('hex')}`
  const store = await openBackend(server.url, namespace)
  try {
    await use(store, namespace)
  } finally {
    await store.close()
  }
}

test('a paused lane has nothing that becomes due, alone or among others', () =>
  withStore(async (store) => {
    await store.call('job.enqueue', { jobs: [job('later', { delayMs: 60_000 })] })
    await store.call('queue.policy', { changes: [{ lane: 'mail', paused: true }] })
    for (const lanes of [['mail'], ['a', 'b', 'mail']]) {
      const { grants } = await store.call('job.turn', { settlements: [], claims: [claim({ lanes })], resend: false })
      expect(grants).toEqual([{ jobs: [], more: false, dueInMs: null, deadlined: [] }])
    }
  }))

test('nothing is left of jobs that were cancelled behind the last one that ran', () =>
  withStore(async (store, namespace) => {
    await store.call('job.enqueue', { jobs: [job('first'), job('second'), job('third')] })
    await store.call('job.cancel', { ids: ['mail/second', 'mail/third'], force: false, keepMs: 0 })
    const { grants } = await store.call('job.turn', { settlements: [], claims: [claim({ limit: 1 })], resend: false })
    expect(grants[0]).toMatchObject({ jobs: [{ id: 'mail/first' }], more: false })
    const dumper = new Dumper(server.port)
    const dump = await dumper.dump(namespace)
    dumper.close()
    expect(recount(dump, namespace)).toEqual([])
  }))

test('that a cancellation was requested is still known when the job has ended', () =>
  withStore(async (store) => {
    const ends = ['complete', 'dead', 'cancel', 'force'] as const
    await store.call('job.enqueue', { jobs: ends.map((id) => job(id)) })
    const { grants } = await store.call('job.turn', { settlements: [], claims: [claim()], resend: false })
    const leases = (grants[0]?.jobs ?? []).map(({ id, token }) => ({ id, token, durationMs: 1, keepMs: null }))
    const ids = leases.map(({ id }) => id)
    await store.call('job.cancel', { ids, force: false, keepMs: null })
    const failure = { code: 'X', message: 'x' }
    const [complete, dead, cancel] = leases
    if (complete === undefined || dead === undefined || cancel === undefined) throw new Error('not all were granted')
    const { verdicts } = await store.call('job.turn', {
      settlements: [
        { ...complete, kind: 'complete', output: null, keepOutputMs: null },
        { ...dead, kind: 'dead', code: 'X', failure, crashes: 0 },
        { ...cancel, kind: 'cancel', failure },
      ],
      claims: [],
      resend: false,
    })
    expect(verdicts).toEqual(['applied', 'applied', 'applied'])
    await store.call('job.cancel', { ids: ['mail/force'], force: true, keepMs: null })
    const { jobs } = await store.call('job.get', { ids })
    expect(jobs.map((each) => [each?.state, each?.cancelRequested, Number.isInteger(each?.finishedAt)])).toEqual([
      ['completed', true, true],
      ['dlq', true, true],
      ['cancelled', true, true],
      ['cancelled', true, true],
    ])
  }))
