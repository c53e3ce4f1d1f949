/**
 * Jobs that end the process they run in, among others that do nothing wrong, with a supervisor that starts the worker again each
 * time. F6; C010.
 */
import { defineJob, type EnqueueOptions, type Holdfast } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { isSharedByProcesses, type SuiteContext } from '../conformance/harness.ts'

const task = defineJob<string>('task')
const GOOD = 50
const DEADLINE_MS = 60_000

interface Ended {
  readonly hf: Holdfast
  readonly deaths: number
  readonly good: readonly string[]
  readonly bad: readonly string[]
}

export function poisonSuite(context: SuiteContext): void {
  if (!isSharedByProcesses(context)) return
  const { harness } = context

  /** Everything is enqueued, the bad ones among the first; ends when nothing is left to do. */
  async function supervise(inputs: readonly string[], options: EnqueueOptions): Promise<Ended> {
    const hf = await harness().connect()
    const first = await hf.enqueueMany(Array.from({ length: 2 }, () => ({ job: task, input: 'good', options })))
    const bad = await hf.enqueueMany(inputs.map((input) => ({ job: task, input, options: { maxAttempts: 3 } })))
    const rest = await hf.enqueueMany(Array.from({ length: GOOD - 2 }, () => ({ job: task, input: 'good', options })))
    let starts = 0
    let isOver = false
    const supervisor = (async () => {
      while (!isOver) {
        starts += 1
        await harness().spawn('poisoned.mjs', JSON.stringify({ lease: 400, concurrency: 4 })).exited
      }
    })()
    await Promise.allSettled([...first, ...bad, ...rest].map((job) => job.result({ timeout: DEADLINE_MS })))
    isOver = true
    await harness().endChildren()
    await supervisor
    const idsOf = (jobs: typeof first): string[] => jobs.map(({ id }) => id)
    return { hf, deaths: starts - 1, good: idsOf([...first, ...rest]), bad: idsOf(bad) }
  }

  const attemptsOf = async ({ hf, good }: Ended): Promise<number[]> => {
    const jobs = await Promise.all(good.map((id) => hf.get(id)))
    expect(new Set(jobs.map((job) => job?.state))).toEqual(new Set(['completed']))
    return jobs.map((job) => job?.attempts ?? 0)
  }

  describe('poison', () => {
    it(
      'C010 a job that ends its process is dead after three deaths, and fifty others with three attempts are done',
      async () => {
        const ended = await supervise(['exit'], { maxAttempts: 3 })
        expect(ended.deaths).toBe(3)
        // Who ran beside it has lost attempts, which their history shows as what they were, but never the last one.
        expect(Math.max(...(await attemptsOf(ended)))).toBe(3)
        const [bad = ''] = ended.bad
        expect(await ended.hf.get(bad)).toMatchObject({ state: 'dlq', dlqCode: 'MAX_ATTEMPTS_EXCEEDED', attempts: 3 })
        for (const id of [bad, ...ended.good]) {
          const lost = (await ended.hf.attempts(id)).filter(({ outcome }) => outcome !== 'succeeded')
          for (const { outcome, failure } of lost)
            expect([outcome, failure?.code]).toEqual(['crashed', 'LEASE_EXPIRED'])
        }
      },
      DEADLINE_MS + 10_000,
    )

    it(
      'F6 C010 of two such jobs, one of which crashes in a thread, each costs the others two crashes at most, so that five are enough',
      async () => {
        const ended = await supervise(['crash', 'exit'], { maxAttempts: 5, maxCrashes: 5 })
        expect(Math.max(...(await attemptsOf(ended)))).toBeLessThanOrEqual(5)
        for (const id of ended.bad) expect(await ended.hf.get(id)).toMatchObject({ state: 'dlq', attempts: 3 })
      },
      DEADLINE_MS + 10_000,
    )
  })
}
