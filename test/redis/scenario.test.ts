/** Seeded scenarios on a real server, `test/scenario/many.ts` says how to replay one. */
import { afterAll, beforeAll, test } from 'vitest'
import { SCENARIOS_TIMEOUT_MS, Scenarios } from '../scenario/many.ts'
import { RedisScenarioStore } from './scenario-store.ts'

let store: RedisScenarioStore

beforeAll(async () => {
  store = await RedisScenarioStore.start()
})
afterAll(() => store.stop())

test(
  'clients on one server are safe at every moment, and every job ends when all is healed',
  () => new Scenarios(store, 'test/redis/scenario.test.ts', { NOSCRIPT: 50, 'scripts flushed': 50 }).run(),
  SCENARIOS_TIMEOUT_MS,
)
