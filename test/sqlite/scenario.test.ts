/** Seeded scenarios on a real file, `test/scenario/many.ts` says how to replay one. */
import { test } from 'vitest'
import { SCENARIOS_TIMEOUT_MS, Scenarios } from '../scenario/many.ts'
import { SqliteScenarioStore } from './scenario-store.ts'

const SOMETIMES = {
  'disk full': 100,
  locked: 100,
  'reply lost': 200,
  'server restarted': 50,
  'notDone job.enqueue': 50,
}

test(
  'clients on one file are safe at every moment, and every job ends when all is healed',
  () => new Scenarios(new SqliteScenarioStore(), 'test/sqlite/scenario.test.ts', SOMETIMES).run(),
  SCENARIOS_TIMEOUT_MS,
)
