/** Limits of lanes, as the store obeys them for whoever claims and enqueues. Assertions 120 and 121. */
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import type { LaneUsage, PolicyChange } from '#dist/src/backends/protocol/index.js'
import { codeOf, rejection } from '../support/event.ts'
import {
  cancelled,
  claim,
  claimOf,
  claimOne,
  complete,
  dead,
  definition,
  grantOf,
  release,
  requeue,
  retryIn,
  settle,
  stored,
} from '../support/protocol.ts'
import type { Harness, SuiteContext } from './harness.ts'

const LANE = 'default'
type Limits = Omit<PolicyChange, 'lane'>

const limit = (raw: Backend, limits: Limits) =>
  raw.call('queue.policy', { changes: [{ lane: LANE, ...limits }], usage: [LANE] })

async function usageOf(raw: Backend): Promise<LaneUsage> {
  const [usage] = (await raw.call('queue.policy', { changes: [], usage: [LANE] })).usage
  if (usage === undefined) throw new Error('the lane was not answered')
  return usage
}

const reasonsOf = ({ throttles }: LaneUsage): readonly string[] => throttles.map(({ reason }) => reason)
const per = (limit: number, perMs: number, burst = limit) => ({ limit, perMs, burst })
const tenants = (keys: readonly (string | null)[]) => keys.map((concurrencyKey) => definition({ concurrencyKey }))

async function fill(raw: Backend, count: number): Promise<readonly string[]> {
  const jobs = Array.from({ length: count }, () => definition())
  await raw.call('job.enqueue', { jobs })
  return jobs.map(({ id }) => id)
}

/** Claims with everybody at once until nobody is given anything; gives what was granted. */
async function claimAll(stores: readonly Backend[], limitOfEach = 3): Promise<readonly string[]> {
  const granted: string[] = []
  for (;;) {
    const jobs = (
      await Promise.all(stores.map((raw, n) => claim(raw, { workerId: `w${n}`, limit: limitOfEach })))
    ).flat()
    if (jobs.length === 0) return granted
    granted.push(...jobs.map(({ id }) => id))
  }
}

export function policySuite({ harness, capabilities }: SuiteContext): void {
  const raws = (count: number) => Promise.all(Array.from({ length: count }, () => harness().raw()))
  if (!capabilities.rateLimits) {
    it('120 a store without limits refuses them by name', async () => {
      const hf = await harness().connect()
      expect(await codeOf(hf.setPolicy(LANE, { maxInFlight: 1 }))).toBe('UNSUPPORTED')
    })
    return
  }
  describe('policy', () => {
    it('120 never more than maxInFlight run, however many claim at once', async () => {
      const stores = await raws(6)
      const [raw] = stores as [Backend]
      await fill(raw, 40)
      await limit(raw, { maxInFlight: 4 })
      for (let round = 0; round < 5; round += 1) {
        const granted = await claimAll(stores)
        const { inFlight, throttles } = await usageOf(raw)
        expect(inFlight).toBe(4)
        expect(throttles.map(({ reason }) => reason)).toEqual(['IN_FLIGHT_EXCEEDED'])
        expect(granted.length).toBe(round === 0 ? 4 : 2)
        const running = (
          await raw.call('job.list', { lane: LANE, states: ['running'], type: null, limit: 9, cursor: null })
        ).jobs
        expect(running.length).toBe(4)
        const leases = running.slice(0, 2).map(({ id }) => id)
        expect((await raw.call('job.cancel', { ids: leases, force: true, keepMs: null })).outcomes).toEqual(
          leases.map(() => 'cancelled'),
        )
      }
    })

    it('120 a throttled claim spends no attempt and its decision is on record', async () => {
      const raw = await harness().raw()
      const ids = await fill(raw, 3)
      await limit(raw, { maxInFlight: 1 })
      const first = await grantOf(raw, { limit: 3 })
      expect(first.jobs.map(({ id }) => id)).toEqual(ids.slice(0, 1))
      expect(first.more).toBe(false)
      expect(first.throttled).toEqual([{ lane: LANE, reason: 'IN_FLIGHT_EXCEEDED', inMs: null }])
      await grantOf(raw)
      expect((await stored(raw, ids[1] ?? '')).attempts).toBe(0)
      expect(await stored(raw, ids[1] ?? '')).toMatchObject({ state: 'queued' })
      const [throttle] = (await usageOf(raw)).throttles
      expect(throttle).toMatchObject({ reason: 'IN_FLIGHT_EXCEEDED', count: 2 })
      expect(throttle?.lastAt).toBeGreaterThanOrEqual(throttle?.firstAt ?? Number.POSITIVE_INFINITY)
    })

    const ENDS = {
      complete,
      retry: (job: { id: string; token: string }) => retryIn(job, 60_000),
      dead,
      cancelled,
      release,
    }
    it('120 every end of an attempt gives its slot back', async () => {
      const raw = await harness().raw()
      await limit(raw, { maxInFlight: 1, maxPerKey: 1 })
      for (const [name, end] of Object.entries(ENDS)) {
        await raw.call('job.enqueue', { jobs: tenants(['t', 't']) })
        const job = await claimOne(raw)
        expect([name, await claim(raw)]).toEqual([name, []])
        expect(await settle(raw, end(job))).toBe('applied')
        expect([name, (await usageOf(raw)).inFlight]).toEqual([name, 0])
        const next = await claimOne(raw)
        expect(await settle(raw, dead(next))).toBe('applied')
      }
      const last = await claimOne(raw, { leaseMs: 100 })
      expect(await claim(raw)).toEqual([])
      await harness().advance(101)
      expect(await claim(raw)).toEqual([])
      const { verdicts } = await raw.call('lease.reap', { decisions: [requeue(last)], limit: 10 })
      expect(verdicts).toEqual(['applied'])
      expect((await usageOf(raw)).inFlight).toBe(0)
      const again = await claimOne(raw)
      await raw.call('job.cancel', { ids: [again.id], force: true, keepMs: 0 })
      expect(await usageOf(raw)).toMatchObject({ inFlight: 0, fullKeys: [] })
    })

    it('120 what a turn ends makes room for what it claims', async () => {
      const raw = await harness().raw()
      await limit(raw, { maxInFlight: 1, maxPerKey: 1 })
      const jobs = tenants(['t', 't', 't', 't'])
      await raw.call('job.enqueue', { jobs })
      let held = await claimOne(raw)
      for (const end of [complete, release, dead]) {
        const turn = { settlements: [end(held)], claims: [claimOf({ limit: 3 })], resend: false }
        const { grants } = await raw.call('job.turn', turn)
        expect(grants[0]?.jobs).toHaveLength(1)
        held = grants[0]?.jobs[0] ?? held
      }
      expect(await usageOf(raw)).toMatchObject({ inFlight: 1, fullKeys: ['t'] })
    })

    it('120 limits are raised, lowered and removed while jobs run', async () => {
      const raw = await harness().raw()
      await fill(raw, 10)
      await limit(raw, { maxInFlight: 3 })
      const running = await claim(raw, { limit: 10 })
      expect(running.length).toBe(3)
      await limit(raw, { maxInFlight: 5 })
      expect((await claim(raw, { limit: 10 })).length).toBe(2)
      await limit(raw, { maxInFlight: 1 })
      for (const job of running) await settle(raw, complete(job))
      expect(await claim(raw, { limit: 10 })).toEqual([])
      await limit(raw, { maxInFlight: null })
      expect((await claim(raw, { limit: 10 })).length).toBe(5)
      expect((await raw.call('queue.policy', { changes: [] })).policies).toEqual([])
    })

    it('120 nothing is claimed once a pause was answered, nor beyond a limit once it was', async () => {
      const stores = await raws(5)
      const [raw] = stores as [Backend]
      for (let round = 0; round < 8; round += 1) {
        await fill(raw, 30)
        const change: Limits = round % 2 === 0 ? { paused: true } : { maxInFlight: 1 }
        const before = stores.slice(1).map((each, n) => claim(each, { workerId: `w${n}`, limit: 2 }))
        const set = await limit(raw, change)
        const inFlight = set.usage[0]?.inFlight ?? 0
        const after = stores.slice(1).map((each, n) => claim(each, { workerId: `v${n}`, limit: 2 }))
        const given = (await Promise.all(after)).flat()
        const held = [...(await Promise.all(before)).flat(), ...given]
        // Those that were asked before may come after the change, and are under the limit then.
        expect(held.length).toBe(change.paused === true ? inFlight : Math.max(1, inFlight))
        if (inFlight > 0 || change.paused === true) expect(given).toEqual([])
        for (const job of held) await settle(raw, complete(job))
        await limit(raw, { paused: false, maxInFlight: null })
      }
    })

    it('120 starts follow the rate: its burst at once, then as the tokens come', async () => {
      const stores = await raws(4)
      const [raw] = stores as [Backend]
      await fill(raw, 20)
      await limit(raw, { rate: per(6, 60_000, 4) })
      const startedAt = harness().now()
      let granted = (await claimAll(stores)).length
      expect(granted).toBeGreaterThanOrEqual(4)
      const grant = await grantOf(raw, { limit: 5 })
      expect(grant.throttled?.[0]).toMatchObject({ lane: LANE, reason: 'RATE_EXCEEDED' })
      const inMs = grant.throttled?.[0]?.inMs ?? 0
      expect(inMs).toBeGreaterThan(0)
      expect(inMs).toBeLessThanOrEqual(10_000)
      for (let round = 0; round < 3; round += 1) {
        await harness().advance(10_000)
        granted += (await claimAll(stores)).length
        const elapsedMs = harness().now() - startedAt + 1_000
        expect(granted).toBeLessThanOrEqual(4 + (elapsedMs * 6) / 60_000)
        expect(granted).toBeGreaterThanOrEqual(5 + round)
      }
      expect(await usageOf(raw)).toMatchObject({ tokens: 0 })
      await limit(raw, { rate: null })
      expect((await claim(raw, { limit: 20 })).length).toBe(20 - granted)
    })

    it('120 a flood of one key does not hold up the others, and keeps its own order', async () => {
      const raw = await harness().raw()
      await limit(raw, { maxPerKey: 2 })
      const flood = tenants(Array.from({ length: 2_500 }, () => 'flood'))
      await raw.call('job.enqueue', { jobs: flood.slice(0, 1_000) })
      await raw.call('job.enqueue', { jobs: flood.slice(1_000, 2_000) })
      await raw.call('job.enqueue', { jobs: flood.slice(2_000) })
      const others = tenants(['other', null, 'other', 'other'])
      await raw.call('job.enqueue', { jobs: others })
      const ids = [...flood.slice(0, 2), ...others.slice(0, 3)].map(({ id }) => id)
      const granted = []
      for (let look = 0; look < 20 && granted.length < ids.length; look += 1)
        granted.push(...(await claim(raw, { limit: 10 })))
      expect(granted.map(({ id }) => id)).toEqual(ids)
      const usage = await usageOf(raw)
      expect(usage).toMatchObject({ inFlight: 5, fullKeys: ['flood', 'other'], parked: 2_499 })
      expect(reasonsOf(usage)).toEqual(['KEY_LIMIT_EXCEEDED'])
      const [stats] = (await raw.call('queue.stats', { lanes: [LANE] })).lanes
      expect(stats?.counts).toMatchObject({ queued: 2_499, running: 5 })
      for (let next = 2; next < 6; next += 1) {
        await settle(raw, complete(granted.shift() ?? { id: '', token: '' }))
        const job = await claimOne(raw, { limit: 10 })
        expect(job.id).toBe(flood[next]?.id)
        granted.unshift(job)
      }
    })

    it('120 what waits for its key is queued: it is listed, cancelled, promoted, buried and replayed as ever', async () => {
      const raw = await harness().raw()
      const now = harness().now()
      await limit(raw, { maxPerKey: 1 })
      const jobs = tenants(['t', 't', 't', 't', 't'])
      const late = { ...definition({ concurrencyKey: 't' }), deadlineAt: now + 60_000 }
      const urgent = { ...definition({ concurrencyKey: 't' }), priority: 5, delayMs: 3_600_000 }
      await raw.call('job.enqueue', { jobs: [...jobs, late, urgent] })
      const first = await claimOne(raw, { limit: 10 })
      expect(await usageOf(raw)).toMatchObject({ parked: 5 })
      const query = { lane: LANE, states: ['queued'] as const, type: null, limit: 10, cursor: null }
      expect((await raw.call('job.list', query)).jobs.map(({ id }) => id)).toEqual(
        [...jobs.slice(1), late].map(({ id }) => id).reverse(),
      )
      const gone = jobs[1]?.id ?? ''
      expect((await raw.call('job.cancel', { ids: [gone], force: false, keepMs: null })).outcomes).toEqual([
        'cancelled',
      ])
      expect((await raw.call('job.promote', { ids: [urgent.id] })).outcomes).toEqual(['promoted'])
      await harness().advance(60_001)
      expect((await grantOf(raw, { limit: 10 })).deadlined).toEqual([late.id])
      expect(await stored(raw, late.id)).toMatchObject({
        state: 'dlq',
        dlqCode: 'DEADLINE_EXCEEDED',
        concurrencyKey: 't',
      })
      expect(await usageOf(raw)).toMatchObject({ parked: 4, inFlight: 1 })
      await settle(raw, complete(first))
      const hf = await harness().connect()
      const { id } = await hf.replay(first.id)
      expect((await hf.get(id))?.concurrencyKey).toBe('t')
      const order = [urgent.id, jobs[2]?.id, jobs[3]?.id, jobs[4]?.id, id]
      for (const wanted of order) {
        const job = await claimOne(raw, { limit: 10 })
        expect(job.id).toBe(wanted)
        await settle(raw, complete(job))
      }
      expect(await usageOf(raw)).toMatchObject({ parked: 0, inFlight: 0 })
    })

    it('120 without maxPerKey what it had set aside runs in its old order', async () => {
      const raw = await harness().raw()
      await limit(raw, { maxPerKey: 1 })
      const jobs = tenants(['t', 't', 't'])
      await raw.call('job.enqueue', { jobs })
      await claimOne(raw, { limit: 10 })
      await raw.call('job.enqueue', { jobs: [definition()] })
      await limit(raw, { maxPerKey: null })
      const granted = (await claim(raw, { limit: 3 })).map(({ id }) => id)
      expect(granted.slice(0, 2)).toEqual(jobs.slice(1).map(({ id }) => id))
      expect(granted.length).toBe(3)
      expect((await raw.call('queue.policy', { changes: [] })).policies).toEqual([])
    })

    it('120 maxPerKey holds however many claim at once', async () => {
      const stores = await raws(6)
      const [raw] = stores as [Backend]
      await limit(raw, { maxPerKey: 2, maxInFlight: 7 })
      await raw.call('job.enqueue', { jobs: tenants(Array.from({ length: 60 }, (_, n) => `k${n % 4}`)) })
      for (let round = 0; round < 4; round += 1) {
        await claimAll(stores)
        const list = { lane: LANE, states: ['running'] as const, type: null, limit: 50, cursor: null }
        const running = (await raw.call('job.list', list)).jobs
        const keys = running.map(({ concurrencyKey }) => concurrencyKey)
        for (const key of new Set(keys)) expect(keys.filter((each) => each === key).length).toBeLessThanOrEqual(2)
        expect(running.length).toBe(7)
        const ids = running.slice(0, 3).map(({ id }) => id)
        await raw.call('job.cancel', { ids, force: true, keepMs: 0 })
      }
    })

    it('120 a claim that was repeated after a lost answer is given the same jobs under limits', async () => {
      const raw = await harness().raw()
      await fill(raw, 5)
      await limit(raw, { maxInFlight: 2, rate: per(100, 1_000) })
      const asked = { settlements: [], claims: [claimOf({ limit: 4 })] }
      const first = await raw.call('job.turn', { ...asked, resend: false })
      const second = await raw.call('job.turn', { ...asked, resend: true })
      expect(second.grants[0]?.jobs).toEqual(first.grants[0]?.jobs)
      expect(await usageOf(raw)).toMatchObject({ inFlight: 2 })
    })

    it('121 beyond the enqueue rate nothing is stored, the caller is told when to come again, and it is on record', async () => {
      const raw = await harness().raw()
      const hf = await harness().connect()
      await hf.setPolicy(LANE, { enqueueRate: { limit: 3, per: '60s' } })
      const kept = [await hf.enqueue('task', 1, { idempotencyKey: 'a' }), await hf.enqueue('task', 2)]
      // What was there before is not counted.
      expect((await hf.enqueue('task', 1, { idempotencyKey: 'a' })).deduplicated).toBe(true)
      kept.push(await hf.enqueue('task', 3))
      const refused = await rejection(hf.enqueue('task', 4))
      expect(refused).toMatchObject({ code: 'ENQUEUE_RATE_EXCEEDED', category: 'unavailable', retryable: true })
      const { retryAfterMs } = (refused as unknown as { details: { retryAfterMs: number } }).details
      expect(retryAfterMs).toBeGreaterThan(0)
      expect(retryAfterMs).toBeLessThanOrEqual(20_000)
      expect((await hf.enqueue('task', 1, { idempotencyKey: 'a' })).deduplicated).toBe(true)
      expect((await hf.stats(LANE)).total).toBe(kept.length)
      const report = await hf.policy(LANE)
      expect(report).toMatchObject({ enqueueRate: { limit: 3, perMs: 60_000 }, enqueueTokens: 0 })
      expect(report.throttles).toMatchObject([{ reason: 'ENQUEUE_RATE_EXCEEDED', count: 1 }])
      await harness().advance(20_000)
      await hf.enqueue('task', 4)
      await hf.setPolicy(LANE, { enqueueRate: null })
      for (let n = 0; n < 5; n += 1) await hf.enqueue('task', n)
      expect((await raw.call('queue.stats', { lanes: [LANE] })).lanes[0]?.counts.queued).toBe(9)
    })

    it('121 of a batch as much is stored as the rate permits, and the error names what', async () => {
      const hf = await harness().connect()
      await hf.setPolicy('strict', { enqueueRate: { limit: 2, per: '1h' } })
      const entry = (queue: string) => ({ job: 'task', input: 1, options: { queue } })
      const refused = await rejection(hf.enqueueMany(['strict', 'open', 'strict', 'strict', 'open'].map(entry)))
      const { stored: ids } = (refused as unknown as { details: { stored: (string | null)[] } }).details
      expect(ids.map((id) => id?.slice(0, id.indexOf('/')) ?? null)).toEqual(['strict', 'open', 'strict', null, 'open'])
      const found = await Promise.all(ids.map((id) => (id === null ? null : hf.get(id))))
      expect(found.map((job) => job !== null)).toEqual([true, true, true, false, true])
      expect((await hf.stats('strict')).total).toBe(2)
    })

    it('121 the rate of enqueues holds however many enqueue at once', async () => {
      const clients = await Promise.all(Array.from({ length: 4 }, () => harness().connect()))
      const [hf] = clients as [Awaited<ReturnType<Harness['connect']>>]
      await hf.setPolicy(LANE, { enqueueRate: { limit: 10, per: '1d' } })
      const codes = await Promise.all(
        clients.flatMap((client) =>
          Array.from({ length: 8 }, (_, n) =>
            client.enqueue('task', n).then(
              () => 'stored',
              (error: { code: string }) => error.code,
            ),
          ),
        ),
      )
      expect(codes.filter((code) => code === 'stored').length).toBe(10)
      expect(codes.filter((code) => code === 'ENQUEUE_RATE_EXCEEDED').length).toBe(22)
      expect((await hf.stats(LANE)).total).toBe(10)
    })
  })
}
