/**
 * The Redis store against the memory store: the same commands give the same replies and leave the same jobs, and after each run
 * the keys of the namespace are recounted. Both stores are told the same time, to the millisecond.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ALL_STATES, MODEL_OPTIONS, MODEL_TIMEOUT_MS, modelRun, play } from '../model/store-commands.ts'
import { Pair } from '../model/store-pair.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Dumper } from './dump.ts'
import { openSubject } from './model-subject.ts'
import { recount } from './recount.ts'

let clock: ServerClock
let server: RedisServer
let dumper: Dumper

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await RedisServer.start({ env: clock.env })
  dumper = new Dumper(server.port)
})
afterAll(async () => {
  dumper.close()
  await server.stop()
  await clock.remove()
})

/** Ends every job and lets its time pass. */
async function empty(pair: Pair): Promise<void> {
  await pair.send('job.cancel', { ids: pair.ids, force: true, keepMs: 0 })
  pair.clock.advance(1_000)
  await pair.send('store.maintain', { limit: 1_000, keepDeadMs: 0 })
  expect((await pair.send('job.list', { lane: null, states: null, type: null, limit: 10, cursor: null })).jobs).toEqual(
    [],
  )
}

test(
  `the same replies as the memory store, seed ${MODEL_OPTIONS.seed}`,
  async () => {
    const states = new Set<string>()
    await fc.assert(
      fc.asyncProperty(modelRun, async (run) => {
        const subject = await openSubject(server.url, clock)
        try {
          const pair = new Pair(subject, run.isForgetful)
          await play(run, pair, states)
          expect(recount(await dumper.dump(subject.namespace), subject.namespace)).toEqual([])
          if (!run.isForgetful) return
          await empty(pair)
          const left = await dumper.dump(subject.namespace)
          expect(recount(left, subject.namespace)).toEqual([])
        } finally {
          await subject.close()
        }
      }),
      // Shrinking runs the same again hundreds of times; every failure tells all of its calls anyway.
      { ...MODEL_OPTIONS, endOnFailure: process.env.HOLDFAST_SHRINK === undefined },
    )
    expect([...states].sort()).toEqual(ALL_STATES)
  },
  MODEL_TIMEOUT_MS,
)
