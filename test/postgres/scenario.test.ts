/** Seeded scenarios on a real server, `test/scenario/many.ts` says how to replay one. */
import { afterAll, beforeAll, test } from 'vitest'
import { SCENARIOS_TIMEOUT_MS, Scenarios } from '../scenario/many.ts'
import { PostgresScenarioStore } from './scenario-store.ts'

const SOMETIMES = {
  'rows locked by a rival': 50,
  'plans invalidated': 20,
  'restart after the end of backend': 1,
  'restart after the end of postmaster': 1,
  // Most of its calls are several statements, so fewer cuts come between a grant and its answer.
  'resend found a grant': 8,
}

let store: PostgresScenarioStore

beforeAll(async () => {
  store = await PostgresScenarioStore.start()
})
afterAll(() => store.stop())

test(
  'clients on one server are safe at every moment, and every job ends when all is healed',
  () => new Scenarios(store, 'test/postgres/scenario.test.ts', SOMETIMES).run(),
  SCENARIOS_TIMEOUT_MS,
)
