/** The PostgreSQL store against the memory store: the same commands give the same replies and leave the same jobs. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ALL_STATES, MODEL_OPTIONS, MODEL_TIMEOUT_MS, modelRun, play } from '../model/store-commands.ts'
import { Pair } from '../model/store-pair.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { makeTables, openBackend } from './stage.ts'

const START_MS = 1_800_000_000_000

let clock: ServerClock
let server: PostgresServer

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await PostgresServer.start({ env: clock.env })
  await makeTables(server)
})
afterAll(async () => {
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
        const backend = await openBackend(server.url, `model-${randomBytes(6).toString('hex')}`)
        try {
          const pair = new Pair({ clock, call: (type, request) => backend.call(type, request) }, run.isForgetful)
          await play(run, pair, states)
        } finally {
          await backend.close()
        }
      }),
      { ...MODEL_OPTIONS, endOnFailure: process.env.HOLDFAST_SHRINK === undefined },
    )
    expect([...states].sort()).toEqual(ALL_STATES)
  },
  MODEL_TIMEOUT_MS,
)
