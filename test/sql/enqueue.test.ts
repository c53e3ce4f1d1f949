/** An enqueue whose way was barred by a job that is gone when it looks who that was: between two statements, everything may end. */
import { expect, it } from 'vitest'
import { enqueue } from '#dist/src/backends/sql/enqueue.js'
import type { AtomicStep, Plan, Step, StepResult } from '#dist/src/backends/sql/plan.js'
import { job } from '../sqlite/support.ts'

/** Runs a plan on a store that answers as it is told: writes are refused so many times, and nothing is ever found. */
function play(request: Parameters<typeof enqueue>[0], refusals: number) {
  const asked: string[] = []
  let left = refusals
  const answer = (step: Step): StepResult => {
    asked.push(step.name)
    const isRefused = step.name === 'job_enqueue' && left > 0
    if (isRefused) left -= 1
    return step.kind === 'write' ? { written: step.rows.map(() => !isRefused), now: 1_000 } : []
  }
  const follow = <T>(plan: Plan<T>): T => {
    let turn = plan.next()
    while (turn.done !== true) {
      const step: Step | AtomicStep = turn.value
      turn = plan.next(step.kind === 'atomic' ? { value: follow(step.plan()) } : answer(step))
    }
    return turn.value
  }
  return { ...follow(enqueue(request)), asked }
}

it('a key that was freed meanwhile is taken: once more, and not for ever', () => {
  const jobs = [job('a', { idempotencyKey: 'k' })]
  const { results, asked } = play({ jobs, resend: false }, 1)
  expect(results).toEqual([{ outcome: 'created', id: 'mail/a', state: 'queued' }])
  expect(asked.filter((name) => name === 'job_enqueue').length).toBe(2)
  expect(() => play({ jobs, resend: false }, 100)).toThrow(/damaged index/)
})

it('a job of the very id that has gone was this one, sent before: it is not made again', () => {
  const { results, asked } = play({ jobs: [job('a'), job('b')], resend: true }, 1)
  expect(results).toEqual(['a', 'b'].map((id) => ({ outcome: 'created', id: `mail/${id}`, state: 'queued' })))
  expect(asked.filter((name) => name === 'job_enqueue').length).toBe(1)
})
