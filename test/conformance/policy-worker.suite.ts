/** Limits of lanes with real workers: what is free again is taken up, what crashed is given back, policies are checked. Assertion 120. */
import { defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import type { Request } from '#dist/src/backends/protocol/index.js'
import { codeOf, eventually, gate } from '../support/event.ts'
import { over, watchingIdleness } from '../support/faulty-backend.ts'
import { claimOne, complete, settle } from '../support/protocol.ts'
import { isSharedByProcesses, type SuiteContext } from './harness.ts'

const task = defineJob<number, number>('task')

export function policyWorkerSuite(context: SuiteContext): void {
  const { harness, capabilities } = context
  if (!capabilities.rateLimits) return
  describe('policy of workers', () => {
    it('120 never more than k run over many workers, and all jobs are done', async () => {
      const clients = await Promise.all([harness().connect(), harness().connect(), harness().connect()])
      const [hf] = clients
      await hf.setPolicy('default', { maxInFlight: 3, maxPerKey: 2 })
      let running = 0
      let most = 0
      let done = 0
      const held = new Map<string, number>()
      const handler = handle(task, async (input) => {
        const key = `k${input % 3}`
        running += 1
        held.set(key, (held.get(key) ?? 0) + 1)
        most = Math.max(most, running)
        expect(held.get(key)).toBeLessThanOrEqual(2)
        await new Promise((resolve) => setImmediate(resolve))
        held.set(key, (held.get(key) ?? 0) - 1)
        running -= 1
        done += 1
        return input
      })
      const entries = Array.from({ length: 60 }, (_, n) => ({
        job: task,
        input: n,
        options: { concurrencyKey: `k${n % 3}` },
      }))
      await hf.enqueueMany(entries)
      await Promise.all(clients.map((client) => harness().worker(client, { handlers: [handler], concurrency: 4 })))
      await eventually(() => done === 60, 'all jobs')
      expect(most).toBeLessThanOrEqual(3)
      await eventually(async () => (await hf.stats()).counts.completed === 60, 'all settled')
      expect(await hf.policy('default')).toMatchObject({ inFlight: 0, parked: 0, fullKeys: [] })
    })

    it('120 a worker that waits for a slot is woken when somebody else frees it', async () => {
      const raw = await harness().raw()
      let isIdle = () => false
      const wrap = (backend: Backend): Backend => {
        const watched = watchingIdleness(backend)
        isIdle = watched.isIdle
        return watched.backend
      }
      const hf = await harness().connect({ wrap })
      const lanes = ['a', 'b', 'c']
      const held = []
      for (const lane of lanes) {
        await hf.setPolicy(lane, { maxInFlight: 1 })
        await hf.enqueueMany([1, 2].map((input) => ({ job: task, input, options: { queue: lane } })))
        held.push(await claimOne(raw, { lanes: [lane], leaseMs: 3_600_000 }))
      }
      const ran: string[] = []
      const handler = handle(task, (input, ctx) => {
        ran.push(ctx.lane)
        return input
      })
      await harness().worker(hf, { handlers: [handler], lanes, poll: '1h' })
      const isHeldBack = async (lane: string) => (await hf.policy(lane)).throttles.length > 0
      await eventually(
        async () => (await Promise.all(lanes.map(isHeldBack))).every(Boolean),
        'claims that were held back',
      )
      for (const [index, job] of held.entries()) {
        await eventually(isIdle, 'the worker to wait')
        expect(await settle(raw, complete(job))).toBe('applied')
        await eventually(() => ran.length === index + 1, `a job of ${job.lane}`)
        await eventually(async () => (await hf.stats(job.lane)).counts.completed === 2, 'its end')
      }
      expect(ran).toEqual(lanes)
    })

    it('120 a worker waits for the next token and is not given up on', async () => {
      const hf = await harness().connect()
      await hf.setPolicy('default', { rate: { limit: 20, per: '1s', burst: 1 } })
      await hf.enqueueMany([1, 2, 3].map((input) => ({ job: task, input })))
      const startedAt: number[] = []
      const worker = await harness().worker(hf, {
        handlers: [
          handle(task, (input) => {
            startedAt.push(performance.now())
            return input
          }),
        ],
        poll: '1h',
      })
      await eventually(() => startedAt.length === 3, 'three starts')
      // At least 50 ms apart by the store's clock; the first of two may be seen late.
      expect((startedAt[2] ?? 0) - (startedAt[0] ?? 0)).toBeGreaterThan(50)
      await worker.stop()
      expect((await hf.policy('default')).throttles[0]?.count).toBeLessThan(40)
    })

    it('120 of a lane under limits a worker takes no more than it has slots for', async () => {
      const asked: number[] = []
      const wrap = (backend: Backend): Backend =>
        over(backend, {
          call: (type, request) => {
            if ('claims' in request) asked.push(...(request as Request<'job.turn'>).claims.map(({ limit }) => limit))
            return backend.call(type, request)
          },
        })
      const hf = await harness().connect({ wrap })
      await hf.setPolicy('default', { maxInFlight: 100 })
      let done = 0
      const handler = handle(task, (input) => {
        done += 1
        return input
      })
      await hf.enqueueMany(Array.from({ length: 60 }, (_, input) => ({ job: task, input })))
      await harness().worker(hf, { handlers: [handler], concurrency: 3 })
      await eventually(() => done === 60, 'all jobs')
      expect(Math.max(...asked)).toBeLessThanOrEqual(3)
    })

    it('120 a limit that is raised or removed lets waiting work begin at once', async () => {
      const [hf, operator] = await Promise.all([harness().connect(), harness().connect()])
      await operator.setPolicy('default', { maxInFlight: 1 })
      const open = gate()
      let running = 0
      await hf.enqueueMany([1, 2, 3].map((input) => ({ job: task, input })))
      await harness().worker(hf, {
        handlers: [
          handle(task, async (input) => {
            running += 1
            await open.passed
            return input
          }),
        ],
      })
      await eventually(() => running === 1, 'the first')
      await operator.setPolicy('default', { maxInFlight: 2 })
      await eventually(() => running === 2, 'the second')
      await operator.setPolicy('default', { maxInFlight: null })
      await eventually(() => running === 3, 'the third')
      open.open()
    })

    it('120 the slots of a holder that is killed come back with its lease', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await hf.setPolicy('default', { maxInFlight: 1, maxPerKey: 1 })
      const { id } = await hf.enqueue('task', 1, { concurrencyKey: 't' })
      await hf.enqueue('task', 2, { concurrencyKey: 't' })
      if (isSharedByProcesses(context)) {
        const child = harness().spawn('claim.mjs', '300')
        await child.line('claimed')
        await child.kill()
      } else await claimOne(raw, { leaseMs: 300 })
      expect((await hf.policy('default')).inFlight).toBe(1)
      await harness().advance(301)
      await eventually(async () => (await hf.maintain()).reaped === 1, 'the lease of the dead')
      expect(await hf.policy('default')).toMatchObject({ inFlight: 0, fullKeys: [] })
      expect((await claimOne(raw)).id).toBe(id)
    })

    it('120 a policy is merged, read back and checked', async () => {
      const hf = await harness().connect()
      await hf.setPolicy('mail', { maxInFlight: 5, rate: { limit: 100, per: '1m' } })
      await hf.setPolicy('mail', { maxPerKey: 2, rate: null })
      await hf.pause('mail')
      expect(await hf.policy('mail')).toEqual({
        lane: 'mail',
        paused: true,
        maxInFlight: 5,
        rate: null,
        maxPerKey: 2,
        enqueueRate: null,
        inFlight: 0,
        tokens: null,
        enqueueTokens: null,
        fullKeys: [],
        parked: 0,
        throttles: [],
      })
      await hf.resume('mail')
      expect(await hf.policies()).toMatchObject([{ lane: 'mail', paused: false, maxInFlight: 5, maxPerKey: 2 }])
      expect((await hf.lanes()).find(({ lane }) => lane === 'mail')).toMatchObject({ paused: false })
      const wrong: readonly [unknown, string][] = [
        [{ maxInFlight: 0 }, 'maxInFlight'],
        [{ maxPerKey: 1.5 }, 'maxPerKey'],
        [{ rate: { limit: 0, per: '1s' } }, 'rate.limit'],
        [{ rate: { limit: 1, per: '31d' } }, 'rate.per'],
        [{ rate: { limit: 1, per: 'soon' } }, 'rate.per'],
        [{ rate: { limit: 1, per: '1s', burst: -1 } }, 'rate.burst'],
        [{ enqueueRate: { limit: 1, per: '1s', burst: 1 } }, 'enqueueRate.burst'],
        [{ maxInflight: 1 }, 'policy.maxInflight'],
        [null, 'policy'],
      ]
      for (const [policy, field] of wrong) {
        await expect(hf.setPolicy('mail', policy as object)).rejects.toMatchObject({ details: { field } })
      }
      expect(await codeOf(hf.enqueue('task', 1, { concurrencyKey: 'ü'.repeat(129) }))).toBe('INVALID_ARGUMENT')
      await hf.setPolicy('mail', { maxInFlight: null, maxPerKey: null })
      expect(await hf.policies()).toEqual([])
    })
  })
}
