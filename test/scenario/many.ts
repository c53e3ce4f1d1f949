/**
 * Many seeds on one store, as a test. `HOLDFAST_SCENARIO_SEED=0x…` replays one. Without it the same seeds run every time;
 * `HOLDFAST_SCENARIO_FROM=random HOLDFAST_SCENARIOS=n` searches where nobody has looked yet.
 */
import { expect } from 'vitest'
import { reachedBy } from '../simulation/reached.ts'
import { type ScenarioOutcome, ScenarioRun } from './run.ts'
import type { ScenarioStore } from './store.ts'

const SCENARIOS = Number(process.env.HOLDFAST_SCENARIOS ?? 500)
const ASKED = process.env.HOLDFAST_SCENARIO_SEED
const FROM = process.env.HOLDFAST_SCENARIO_FROM ?? '1'
const RUN_TWICE_EVERY = 50
export const SCENARIOS_TIMEOUT_MS = 1_200_000

/** What 500 scenarios of any store must meet, and how often at least. */
const SOMETIMES: Readonly<Record<string, number>> = {
  'connections killed': 50,
  'cut off': 50,
  'server restarted': 2,
  'clock went back': 50,
  'epoch above the time': 5,
  'client forgot all': 50,
  'ambiguous was done': 50,
  'ambiguous was not done': 50,
  'notDone job.turn': 10,
  'repeated job.turn': 50,
  'repeated job.enqueue': 20,
  'resend found a grant': 20,
  'resend claimed anew': 20,
  'complete applied': 500,
  'complete alreadyApplied': 5,
  'complete leaseLost': 5,
  'retry cancelled': 1,
  'reap applied': 50,
  'reap leaseLost': 5,
  'renew renewed': 50,
  'renew cancelRequested': 1,
  'renew leaseLost': 1,
  'cancel cancelled': 50,
  'cancel requested': 20,
  'promote promoted': 5,
  'release applied': 50,
  'buried by its deadline': 5,
  'enqueue deduplicated': 50,
}

const name = (seed: number): string => `0x${seed.toString(16)}`

export class Scenarios {
  private readonly store: ScenarioStore
  private readonly file: string
  private readonly sometimes: Readonly<Record<string, number>>

  /** `sometimes`: what 500 scenarios of this store must meet besides, and how often at least. */
  constructor(store: ScenarioStore, file: string, sometimes: Readonly<Record<string, number>>) {
    this.store = store
    this.file = file
    this.sometimes = { ...SOMETIMES, ...sometimes }
  }

  async run(): Promise<void> {
    if (ASKED === undefined) {
      await this.many(FROM === 'random' ? Math.floor(Math.random() * 2 ** 48) : Number(FROM))
      return
    }
    const { run, hash } = await this.check(Number(ASKED))
    for (const fact of run.facts) console.info(JSON.stringify(fact))
    console.info(`${name(Number(ASKED))}: ${run.facts.length} facts, ${hash}`)
  }

  private async check(seed: number): Promise<ScenarioOutcome> {
    try {
      const outcome = await new ScenarioRun(seed, this.store).run()
      const shown = outcome.violations.map((each) => `${each.invariant} ${each.job} at ${each.at}: ${each.message}`)
      expect(shown.slice(0, 5)).toEqual([])
      return outcome
    } catch (error) {
      console.error(`replay with HOLDFAST_SCENARIO_SEED=${name(seed)} npx vitest run ${this.file}`)
      throw error
    }
  }

  private async many(first: number): Promise<void> {
    console.info(`${SCENARIOS} scenarios from ${name(first)}`)
    const startedAt = performance.now()
    const counts = new Map<string, number>()
    for (let seed = first; seed < first + SCENARIOS; seed += 1) {
      const outcome = await this.check(seed)
      if (seed % RUN_TWICE_EVERY === 0) {
        const again = await this.check(seed)
        expect(again.run.facts, name(seed)).toEqual(outcome.run.facts)
        expect(again.hash, name(seed)).toBe(outcome.hash)
      }
      for (const [what, count] of [...outcome.counts, ...reachedBy(outcome.run)])
        counts.set(what, (counts.get(what) ?? 0) + count)
    }
    const seconds = (performance.now() - startedAt) / 1000
    console.info(`${seconds.toFixed(1)} s, ${((seconds * 1000) / SCENARIOS).toFixed(0)} ms each`)
    const lines = [...counts].sort().map(([what, count]) => `${what} ${count}`)
    console.info(lines.join(', '))
    for (const [what, least] of Object.entries(this.sometimes))
      expect(counts.get(what) ?? 0, what).toBeGreaterThanOrEqual(Math.floor((least * SCENARIOS) / 500))
  }
}
