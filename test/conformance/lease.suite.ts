/** How long a job stays its owner's, and what becomes of it after. Assertions 19–26. */
import type { Holdfast } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Settlement } from '#dist/src/backends/protocol/index.js'
import {
  claim,
  claimOf,
  claimOne,
  complete,
  history,
  picture,
  put,
  release,
  renew,
  requeue,
  SETTLEMENTS,
  settle,
  stored,
} from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const LEASE_MS = 60_000

export function leaseSuite({ harness }: SuiteContext): void {
  const expireAndReap = async (hf: Holdfast): Promise<number> => {
    await harness().advance(LEASE_MS + 1)
    return (await hf.maintain()).reaped
  }

  describe('lease', () => {
    it('19 a lease renewed in time outlives its first length', async () => {
      const raw = await harness().raw()
      const hf = await harness().connect()
      await put(raw)
      const lease = await claimOne(raw, { leaseMs: LEASE_MS })
      for (let step = 0; step < 4; step += 1) {
        await harness().advance(LEASE_MS * 0.6)
        expect(await renew(raw, lease, LEASE_MS)).toBe('renewed')
        expect((await stored(raw, lease.id)).leaseExpiresAt).toBeGreaterThan(harness().now() + LEASE_MS * 0.9)
        expect((await hf.maintain()).reaped).toBe(0)
        expect(await claim(raw, { workerId: 'other' })).toEqual([])
      }
      expect(await settle(raw, complete(lease))).toBe('applied')
      expect(await history(raw, lease.id)).toHaveLength(1)
    })

    it('20 the old owner of a reaped lease cannot renew it', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw, { leaseMs: LEASE_MS })
      expect(await expireAndReap(hf)).toBe(1)
      const before = await picture(raw, lease.id)
      expect(await renew(raw, lease)).toBe('leaseLost')
      // Nor is any ending of it taken, or taken for one that was applied before.
      for (const make of Object.values(SETTLEMENTS)) expect(await settle(raw, make(lease))).toBe('leaseLost')
      expect(await picture(raw, lease.id)).toEqual(before)
      expect((await claim(raw, { workerId: 'other' })).map(({ id }) => id)).toEqual([lease.id])
      expect(await renew(raw, lease)).toBe('leaseLost')
    })

    it('21 a reaped job waits again, and its attempt is closed under its old owner', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw, { workerId: 'gone', leaseMs: LEASE_MS })
      const [open] = await history(raw, lease.id)
      expect(open).toMatchObject({ outcome: 'running', workerId: 'gone', finishedAt: null })
      expect(await expireAndReap(hf)).toBe(1)
      expect(await stored(raw, lease.id)).toMatchObject({
        state: 'queued',
        attempts: 1,
        crashes: 1,
        leaseExpiresAt: null,
        finishedAt: null,
        lastFailure: { code: 'LEASE_EXPIRED' },
      })
      const closed = await history(raw, lease.id)
      expect(closed).toMatchObject([
        { attempt: 1, outcome: 'crashed', workerId: 'gone', failure: { code: 'LEASE_EXPIRED' } },
      ])
      expect(closed[0]?.failure?.message).toContain('gone')
      expect(closed[0]?.startedAt).toBe(open?.startedAt)
      expect(closed[0]?.finishedAt).toBeGreaterThan((open?.startedAt ?? 0) + LEASE_MS)
    })

    it('22 reaping leaves a lease that has not expired alone, whatever it is told', async () => {
      const raw = await harness().raw()
      const hf = await harness().connect()
      await put(raw)
      const lease = await claimOne(raw, { leaseMs: LEASE_MS })
      await harness().advance(LEASE_MS - 30_000)
      const before = await picture(raw, lease.id)
      expect((await hf.maintain()).reaped).toBe(0)
      const { verdicts, expired } = await raw.call('lease.reap', { decisions: [requeue(lease)], limit: 10 })
      expect([verdicts, expired]).toEqual([['leaseLost'], []])
      expect(await picture(raw, lease.id)).toEqual(before)
    })

    it('22 a lease renewed between being seen as expired and being reaped stays', async () => {
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw, { leaseMs: LEASE_MS })
      await harness().advance(LEASE_MS + 1)
      const { expired } = await raw.call('lease.reap', { decisions: [], limit: 10 })
      expect(expired.map(({ token }) => token)).toEqual([lease.token])
      expect(await renew(raw, lease, LEASE_MS)).toBe('renewed')
      const { verdicts } = await raw.call('lease.reap', { decisions: [requeue(lease)], limit: 10 })
      expect(verdicts).toEqual(['leaseLost'])
      expect(await settle(raw, complete(lease))).toBe('applied')
    })

    it('23 once another worker has the job, nothing of the first is accepted', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const a = await claimOne(raw, { workerId: 'a', leaseMs: LEASE_MS })
      expect(await expireAndReap(hf)).toBe(1)
      const b = await claimOne(raw, { workerId: 'b', leaseMs: LEASE_MS })
      const before = await picture(raw, a.id)
      for (const make of Object.values(SETTLEMENTS)) expect(await settle(raw, make(a))).toBe('leaseLost')
      expect(await picture(raw, a.id)).toEqual(before)
      expect(await settle(raw, complete(b, '"of b"'))).toBe('applied')
      expect(await settle(raw, complete(a, '"of a"'))).toBe('leaseLost')
      expect(await stored(raw, a.id)).toMatchObject({ state: 'completed', output: '"of b"', workerId: 'b' })
      expect((await history(raw, a.id)).map(({ workerId, outcome }) => [workerId, outcome])).toEqual([
        ['a', 'crashed'],
        ['b', 'succeeded'],
      ])
    })

    it('24 two grants to one worker id are two leases', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const first = await claimOne(raw, { workerId: 'same' })
      expect(await settle(raw, release(first))).toBe('applied')
      // At once, so that no passing of time helps to tell them apart.
      const second = await claimOne(raw, { workerId: 'same', leaseMs: LEASE_MS })
      expect(second.id).toBe(first.id)
      // What was given back is not charged.
      expect([first.attempt, second.attempt]).toEqual([1, 1])
      expect(await expireAndReap(hf)).toBe(1)
      const third = await claimOne(raw, { workerId: 'same' })
      const epochs = [first, second, third].map(({ token }) => Number(token.split(':')[0]))
      expect(epochs[1]).toBeGreaterThan(epochs[0] ?? Number.NaN)
      expect(epochs[2]).toBeGreaterThan(epochs[1] ?? Number.NaN)
      for (const stale of [first, second]) {
        for (const make of Object.values(SETTLEMENTS)) expect(await settle(raw, make(stale))).toBe('leaseLost')
      }
      expect(await settle(raw, complete(third))).toBe('applied')
    })

    // With nothing on record and nothing to keep a store may take a shorter way, which must ask for the token all the same.
    it('24 a claim that was given back unstarted ends nothing, whether the job is to be kept or not', async () => {
      const raw = await harness().raw()
      for (const keepMs of [null, 60_000, 0]) {
        for (const claims of [[], [claimOf({ lanes: ['none'] })]]) {
          const { id } = await put(raw)
          const first = await claimOne(raw)
          expect(await settle(raw, { ...release(first), started: false } as Settlement)).toBe('applied')
          const second = await claimOne(raw)
          const settlements = [{ ...complete(first), keepMs }]
          const { verdicts } = await raw.call('job.turn', { settlements, claims, resend: false })
          expect([keepMs, claims.length, verdicts]).toEqual([keepMs, claims.length, ['leaseLost']])
          expect((await stored(raw, id)).state).toBe('running')
          expect(await settle(raw, { ...complete(second), keepMs })).toBe('applied')
        }
      }
    })

    it('24 a grant after the clock went back is newer than the one before', async () => {
      const raw = await harness().raw()
      await put(raw)
      const first = await claimOne(raw, { workerId: 'same' })
      expect(await settle(raw, release(first))).toBe('applied')
      await harness().advance(-3_600_000)
      // The job became ready at a time that is in the future now; an hour later it is ready again.
      const second = await claimOne(raw, { workerId: 'same' })
      expect(Number(second.token.split(':')[0])).toBeGreaterThan(Number(first.token.split(':')[0]))
      expect(await settle(raw, complete(first))).toBe('leaseLost')
      expect(await settle(raw, complete(second))).toBe('applied')
    })

    it('25 a job that outlives none of its n attempts is dead after n, never run again', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const { id } = await put(raw, { maxAttempts: 3, maxCrashes: 100 })
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        expect(await claimOne(raw, { workerId: `w-${attempt}`, leaseMs: LEASE_MS })).toMatchObject({ id, attempt })
        expect(await expireAndReap(hf)).toBe(1)
      }
      expect(await stored(raw, id)).toMatchObject({
        state: 'dlq',
        attempts: 3,
        dlqCode: 'MAX_ATTEMPTS_EXCEEDED',
        lastFailure: { code: 'LEASE_EXPIRED' },
      })
      await harness().advance(86_400_000)
      expect(await claim(raw, { limit: 10 })).toEqual([])
      expect((await history(raw, id)).map(({ workerId, outcome }) => [workerId, outcome])).toEqual([
        ['w-1', 'crashed'],
        ['w-2', 'crashed'],
        ['w-3', 'crashed'],
      ])
    })

    it('25 a job that crashes its workers is dead after maxCrashes, whatever its budget', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const { id } = await put(raw, { maxAttempts: 1_000, maxCrashes: 3 })
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        await claimOne(raw, { leaseMs: LEASE_MS })
        expect(await expireAndReap(hf)).toBe(1)
      }
      expect(await stored(raw, id)).toMatchObject({ state: 'dlq', attempts: 3, crashes: 3, dlqCode: 'CRASH_LOOP' })
      expect(await claim(raw, { limit: 10 })).toEqual([])
    })

    it('26 of several reapers at once each expired job is taken back by one', async () => {
      const raw = await harness().raw()
      const clients = await Promise.all(Array.from({ length: 4 }, () => harness().connect()))
      for (let n = 0; n < 150; n += 1) await put(raw)
      const leases = await claim(raw, { limit: 150, leaseMs: LEASE_MS })
      expect(leases).toHaveLength(150)
      await harness().advance(LEASE_MS + 1)
      const reaped = await Promise.all(clients.map((client) => client.maintain()))
      expect(reaped.reduce((sum, each) => sum + each.reaped, 0)).toBe(150)
      for (const { id } of leases.slice(0, 20)) {
        expect(await stored(raw, id)).toMatchObject({ state: 'queued', attempts: 1, crashes: 1 })
        expect(await history(raw, id)).toHaveLength(1)
      }
      expect((await clients[0]?.stats())?.counts).toMatchObject({ queued: 150, running: 0 })
      expect(await claim(raw, { limit: 1_000 })).toHaveLength(150)
    })

    it('26 a decision of a reaper that was overtaken changes nothing', async () => {
      const [one, two] = [await harness().raw(), await harness().raw()]
      await put(one)
      const lease = await claimOne(one, { leaseMs: LEASE_MS })
      await harness().advance(LEASE_MS + 1)
      const decide = { decisions: [requeue(lease)], limit: 10 }
      const replies = await Promise.all([one.call('lease.reap', decide), two.call('lease.reap', decide)])
      expect(replies.map(({ verdicts }) => verdicts[0]).sort()).toEqual(['applied', 'leaseLost'])
      const again = await claimOne(two, { workerId: 'b' })
      const before = await picture(two, again.id)
      expect((await one.call('lease.reap', decide)).verdicts).toEqual(['leaseLost'])
      expect(await picture(two, again.id)).toEqual(before)
    })
  })
}
