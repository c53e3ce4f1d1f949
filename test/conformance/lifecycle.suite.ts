/** The states of a job and the moves between them, asked of the protocol itself. Assertions 5–10, 13. */
import { defineJob, handle, JOB_STATES, type JobState, jobMachine } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { nextState } from '#dist/src/actors/job-machine.js'
import type { Backend } from '#dist/src/backends/backend.js'
import type { LeaseRef } from '#dist/src/backends/protocol/index.js'
import { codeOf } from '../support/event.ts'
import {
  cancelled,
  claim,
  claimOne,
  complete,
  dead,
  definition,
  picture,
  progress,
  put,
  release,
  renew,
  requeue,
  retryIn,
  SETTLEMENTS,
  settle,
  stored,
  ulid,
} from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

/** The table of architecture.md, section 2, written out a second time so that the machine is held to it. */
const LEGAL: Readonly<Record<JobState | 'new', readonly JobState[]>> = {
  new: ['waiting', 'scheduled', 'queued'],
  waiting: ['queued', 'scheduled', 'cancelled', 'dlq'],
  scheduled: ['queued', 'cancelled', 'dlq'],
  queued: ['running', 'cancelled', 'dlq'],
  running: ['completed', 'retry_wait', 'queued', 'cancelled', 'dlq'],
  retry_wait: ['queued', 'cancelled', 'dlq'],
  completed: [],
  cancelled: [],
  dlq: [],
}

const FORGED = '9007199254740991:worker-a:0123456789abcdef01234567.0'

/** A job brought into a state, with the last token it was given out under; forged where there was none. */
async function inState(raw: Backend, state: JobState): Promise<LeaseRef> {
  const lane = `lane-${ulid()}`
  const { id } = await put(raw, { lane, delayMs: state === 'scheduled' ? 3_600_000 : 0 })
  if (state === 'scheduled') return { id, token: FORGED }
  const lease = await claimOne(raw, { lanes: [lane] })
  const ending = {
    queued: release,
    running: null,
    retry_wait: (ref: LeaseRef) => retryIn(ref, 3_600_000),
    completed: complete,
    cancelled,
    dlq: dead,
    waiting: null,
  }[state]
  if (ending !== null) expect(await settle(raw, ending(lease))).toBe('applied')
  expect((await stored(raw, id)).state).toBe(state)
  return { id, token: lease.token }
}

/** Every request of the protocol that would bring a job into a state. What it answers must not say that it did. */
const REQUESTS: Readonly<Record<JobState, readonly ((raw: Backend, ref: LeaseRef) => Promise<unknown>)[]>> = {
  waiting: [],
  scheduled: [
    async (raw, { id }) => {
      const jobs = [definition({ lane: id.split('/')[0] ?? '', id, delayMs: 3_600_000 })]
      const [result] = (await raw.call('job.enqueue', { jobs })).results
      return result?.outcome === 'refused' ? undefined : result?.state
    },
  ],
  queued: [
    (raw, ref) => settle(raw, release(ref)),
    async (raw, { id }) => (await raw.call('job.promote', { ids: [id] })).outcomes[0],
    async (raw, ref) => (await raw.call('lease.reap', { decisions: [requeue(ref)], limit: 1 })).verdicts[0],
  ],
  running: [async (raw, { id }) => (await claim(raw, { lanes: [id.split('/')[0] ?? ''] })).length],
  retry_wait: [(raw, ref) => settle(raw, retryIn(ref, 1_000))],
  completed: [(raw, ref) => settle(raw, complete(ref, '"other"'))],
  cancelled: [
    (raw, ref) => settle(raw, cancelled(ref)),
    async (raw, { id }) =>
      (await raw.call('job.cancel', { ids: [id], force: true, keepMs: null })).outcomes[0] ?? 'none',
  ],
  dlq: [(raw, ref) => settle(raw, dead(ref))],
}

const REFUSALS: readonly unknown[] = ['leaseLost', 'alreadyApplied', 'invalid_state', 'already_terminal', 0]

export function lifecycleSuite({ harness, capabilities }: SuiteContext): void {
  describe('lifecycle', () => {
    it('5 a handler that resolves completes the job with exactly one succeeded attempt', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue('sum', [1, 2])
      let calls = 0
      const sum = handle(defineJob<number[], number>('sum'), (input) => {
        calls += 1
        return input.reduce((a, b) => a + b)
      })
      expect(await hf.runUntilEmpty({ handlers: [sum], id: 'worker-1' })).toBe(1)
      expect(calls).toBe(1)
      expect(await job.result()).toBe(3)
      expect(await hf.get(job.id)).toMatchObject({ state: 'completed', attempts: 1, output: 3, workerId: 'worker-1' })
      const attempts = await hf.attempts(job.id)
      expect(attempts).toMatchObject([{ attempt: 1, outcome: 'succeeded', workerId: 'worker-1', failure: null }])
      expect(attempts[0]?.finishedAt).toBeGreaterThanOrEqual(attempts[0]?.startedAt ?? Number.NaN)
    })

    for (const state of ['completed', 'cancelled', 'dlq'] as const) {
      it(`6 nothing changes a job that is ${state}`, async () => {
        const hf = await harness().connect()
        const raw = await harness().raw()
        const lease = await inState(raw, state)
        const before = await picture(raw, lease.id)
        await harness().advance(60_000)
        for (const make of Object.values(SETTLEMENTS)) {
          expect(['leaseLost', 'alreadyApplied']).toContain(await settle(raw, make(lease)))
          expect(await settle(raw, make({ ...lease, token: FORGED }))).toBe('leaseLost')
        }
        expect(await renew(raw, lease)).toBe('leaseLost')
        expect(await progress(raw, lease)).toBe('leaseLost')
        expect(await hf.cancel(lease.id)).toBe('already_terminal')
        expect(await hf.cancel(lease.id, { force: true })).toBe('already_terminal')
        expect(await codeOf(hf.retryNow(lease.id))).toBe('INVALID_STATE')
        expect(await claim(raw, { lanes: [lease.id.split('/')[0] ?? ''] })).toEqual([])
        expect((await hf.maintain()).reaped).toBe(0)
        expect(await picture(raw, lease.id)).toEqual(before)
      })
    }

    it('7 the machine has the moves of the table and no other', () => {
      const events = new Set(Object.values(jobMachine.states).flatMap(({ transitions }) => [...transitions.keys()]))
      for (const from of ['new', ...JOB_STATES] as const) {
        const reached = [...events].map((event) => nextState(from, event as 'claim')).filter((to) => to !== null)
        expect([from, new Set(reached)]).toEqual([from, new Set(LEGAL[from])])
      }
    })

    for (const from of JOB_STATES) {
      if (from === 'waiting' && !capabilities.continuations) continue
      it(`7 no illegal move out of ${from} is made`, async () => {
        const raw = await harness().raw()
        for (const to of JOB_STATES) {
          if (LEGAL[from].includes(to)) continue
          for (const request of REQUESTS[to]) {
            const ref = await inState(raw, from)
            const before = await picture(raw, ref.id)
            const answer = await request(raw, ref)
            // Sending an enqueue again answers with the state as it is.
            expect([to, ...REFUSALS, from]).toContain(answer)
            expect([from, to, await picture(raw, ref.id)]).toEqual([from, to, before])
          }
        }
      })
    }

    it('8 a worker without the lease can do nothing to a running job', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw, { workerId: 'owner' })
      await put(raw)
      const neighbour = await claimOne(raw, { workerId: 'owner' })
      const [epoch = '', worker = '', grant = ''] = lease.token.split(':')
      const tokens = [
        neighbour.token,
        '',
        epoch,
        `${epoch}:${worker}`,
        `${epoch}:${worker}:${grant}0`,
        `${epoch}:intruder:${grant}`,
        `${Number(epoch) + 1}:${worker}:${grant}`,
        `${Number(epoch) - 1}:${worker}:${grant}`,
        lease.token.toUpperCase(),
      ]
      const before = await picture(raw, lease.id)
      for (const token of tokens) {
        for (const make of Object.values(SETTLEMENTS)) {
          expect([token, await settle(raw, make({ id: lease.id, token }))]).toEqual([token, 'leaseLost'])
        }
        expect(await renew(raw, { id: lease.id, token }, 999_999)).toBe('leaseLost')
        expect(await progress(raw, { id: lease.id, token })).toBe('leaseLost')
      }
      expect(await picture(raw, lease.id)).toEqual(before)
      expect(await settle(raw, complete({ id: `default/${ulid()}`, token: lease.token }))).toBe('gone')
      expect(await settle(raw, complete(lease))).toBe('applied')
      expect((await hf.get(lease.id))?.state).toBe('completed')
    })

    it('9 a stored state that no release knows is an error, never a default', async () => {
      const { damageState } = harness().store
      const hf = await harness().connect()
      const raw = await harness().raw()
      expect(await codeOf(hf.list({ state: 'nonsense' as 'queued' }))).toBe('INVALID_STATE')
      expect(await codeOf(hf.list({ state: '__proto__' as 'queued' }))).toBe('INVALID_STATE')
      const healthy = await hf.enqueue('task', 1)
      const damaged = await hf.enqueue('task', 2)
      await damageState?.(damaged.id, 'nonsense')
      const expected = damageState === null ? undefined : 'STORE_CORRUPT'
      for (const read of [() => hf.get(damaged.id), () => hf.explain(damaged.id), () => hf.cancel(damaged.id)])
        expect(
          await read().then(
            () => undefined,
            (error) => error.code,
          ),
        ).toBe(expected)
      expect((await hf.get(healthy.id))?.state).toBe('queued')
      expect((await claim(raw, { limit: 10 })).map(({ id }) => id)).toEqual([healthy.id])
    })

    it('10 both spellings of a state mean the same', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await inState(raw, 'completed')
      await inState(raw, 'cancelled')
      await inState(raw, 'dlq')
      for (const [spelling, state] of [
        ['succeeded', 'completed'],
        ['canceled', 'cancelled'],
      ] as const) {
        const { jobs } = await hf.list({ state })
        expect(jobs.map((job) => job.state)).toEqual([state])
        expect((await hf.list({ state: spelling })).jobs).toEqual(jobs)
      }
      const both = await hf.list({ state: ['succeeded', 'canceled'] as unknown as readonly JobState[] })
      expect(both.jobs.map((job) => job.state).sort()).toEqual(['cancelled', 'completed'])
    })

    it('13 an unknown id reads as null and cannot be acted on', async () => {
      const hf = await harness().connect()
      await hf.enqueue('task', 1)
      for (const id of [`default/${ulid()}`, `other/${ulid()}`, 'default/', 'nonsense', '', "' OR 1=1 --"]) {
        expect(await hf.get(id)).toBeNull()
        expect(await hf.explain(id)).toBeNull()
        expect(await hf.attempts(id)).toEqual([])
        expect(await codeOf(hf.cancel(id))).toBe('JOB_NOT_FOUND')
        expect(await codeOf(hf.cancel(id, { force: true }))).toBe('JOB_NOT_FOUND')
        expect(await codeOf(hf.replay(id))).toBe('JOB_NOT_FOUND')
        expect(await codeOf(hf.retryNow(id))).toBe('JOB_NOT_FOUND')
      }
      expect((await hf.stats()).counts).toMatchObject({ queued: 1, cancelled: 0 })
    })
  })
}
