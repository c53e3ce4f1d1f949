/** The PostgreSQL store against the memory store: the same commands give the same replies and leave the same jobs. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { ALL_STATES, MODEL_OPTIONS, MODEL_TIMEOUT_MS, modelRun, play } from '../model/store-commands.ts'
import { excuseSameTime, Pair } from '../model/store-pair.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { openBackend } from './support.ts'

const START_MS = 1_800_000_000_000

/** Emptied between runs: plans are made once for a connection, and take longer than the statements. */
const TABLES = ['job', 'archive', 'attempt', 'key', 'counter', 'lane', 'gate', 'throttle', 'worker']

let clock: ServerClock
let server: PostgresServer
let backend: PostgresBackend

beforeAll(async () => {
  clock = await ServerClock.make()
  clock.freeze(START_MS)
  // What survives a crash is not asked here.
  server = await PostgresServer.start({ env: clock.env, settings: { fsync: 'off' } })
  backend = await openBackend(`${server.url}?connections=1&listen=off`, 'model')
})
afterAll(async () => {
  await backend.close()
  await server.stop()
  await clock.remove()
})

test(
  `the same replies as the memory store, seed ${MODEL_OPTIONS.seed}`,
  async () => {
    const states = new Set<string>()
    await fc.assert(
      fc.asyncProperty(modelRun, async (run) => {
        clock.freeze(START_MS)
        await server.query(TABLES.map((table) => `DELETE FROM holdfast.${table}`).join('; '))
        const pair = new Pair(
          { clock, call: (type, request) => backend.call(type, request), excuse: excuseSameTime },
          run.isForgetful,
        )
        await play(run, pair, states)
      }),
      { ...MODEL_OPTIONS, endOnFailure: process.env.HOLDFAST_SHRINK === undefined },
    )
    expect([...states].sort()).toEqual(ALL_STATES)
  },
  MODEL_TIMEOUT_MS,
)
