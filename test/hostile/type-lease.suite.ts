/** A lease of its own for a type of jobs, beside the worker's: on every store, and by processes that die or stand still. Case C021. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { defineJob, type Holdfast, handle, type JobHandle } from 'holdfast'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import { isSharedByProcesses, type SuiteContext } from '../conformance/harness.ts'
import type { Child } from '../support/child.ts'
import { eventually, gate, nextEvent } from '../support/event.ts'
import { over } from '../support/faulty-backend.ts'

const FAST_MS = 2_000
const SLOW_MS = 10_000
/** What a reaper and a claim take on a busy machine. */
const SLACK_MS = 2_500
const SHORT_MS = 600
/** Of a worker whose types have shorter ones: if it counted, nothing would end in time. */
const LONG_MS = 60_000
/**
 * A stop falls where it falls: once in some 150 times between the look at the clock and the call that was then made, which no look can prevent.
 * A second try tells that from a fault.
 */
const STOPPED_IN_A_CALL = { retry: 1 }

const task = defineJob<unknown, string>('task')

/** Renewals go to the store as long as `passes` says so; the others are never answered. */
const renewing = (backend: Backend, passes: (leaseMs: number) => boolean): Backend =>
  over(backend, {
    call: (type, request) =>
      type === 'lease.renew' && 'leaseMs' in request && !passes(request.leaseMs)
        ? new Promise(() => {})
        : backend.call(type, request),
    keepLeases: () => null,
  })

export function typeLeaseSuite(context: SuiteContext): void {
  const { harness } = context

  /** What is left of the lease by the store's clock. */
  const leftMs = async (hf: Holdfast, { id }: JobHandle<unknown>): Promise<number> =>
    ((await hf.get(id))?.leaseExpiresAt ?? Number.POSITIVE_INFINITY) - harness().now()

  const isOwn = (hf: Holdfast, job: JobHandle<unknown>, leaseMs: number): Promise<true> =>
    eventually(async () => (await leftMs(hf, job)) <= leaseMs, `the lease is one of ${leaseMs} ms`)

  describe('leases of types', () => {
    it('C021 a job is recovered when the lease of its type is over, and one of another type of the same worker stands', async () => {
      const hf = await harness().connect()
      const [short, long] = [defineJob('short', { lease: SHORT_MS }), defineJob('long', { lease: 2 * LONG_MS })]
      let isCut = false
      const cut = await harness().connect({ wrap: (backend) => renewing(backend, () => !isCut) })
      const jobs = [await hf.enqueue(short, null), await hf.enqueue(task, null), await hf.enqueue(long, null)] as const
      const lost: string[] = []
      const end = gate<string>()
      const held = [short, task, long].map((type) =>
        handle(type, (_input, { signal }) => {
          signal.addEventListener('abort', () => lost.push(type.type))
          return end.passed
        }),
      )
      // With its slots taken it cannot claim again what it has lost.
      await harness().worker(cut, { handlers: held, lease: LONG_MS, concurrency: 3, killGrace: '15s' })
      await isOwn(hf, jobs[0], SHORT_MS)
      await eventually(async () => (await leftMs(hf, jobs[2])) > LONG_MS, 'the longest of the three')
      isCut = true
      const handlers = [short, task, long].map((type) => handle(type, () => 'of the second'))
      await harness().worker(hf, { handlers, reap: 40 })
      expect(await jobs[0].result({ timeout: '8s' })).toBe('of the second')
      expect(await outcomes(hf, jobs[0])).toEqual(['LEASE_EXPIRED', 'succeeded'])
      const [own, others] = [await leftMs(hf, jobs[1]), await leftMs(hf, jobs[2])]
      expect([own > SHORT_MS, own <= LONG_MS, others > LONG_MS, others <= 2 * LONG_MS]).toEqual([
        true,
        true,
        true,
        true,
      ])
      expect(await states(hf, jobs.slice(1))).toEqual(['running after 1', 'running after 1'])
      await eventually(() => lost.length > 0, 'its signal has fired')
      expect(lost).toEqual(['short'])
      end.open('of the first')
    })

    it('C021 where the renewal that asks for it does not get through, a longer lease is given up with the one of the claim', async () => {
      const hf = await harness().connect()
      const long = defineJob('long', { lease: LONG_MS })
      const cut = await harness().connect({ wrap: (backend) => renewing(backend, () => false), callDeadline: SHORT_MS })
      let code: unknown = null
      const waits = handle(long, (_input, { signal }) => {
        signal.addEventListener('abort', () => {
          code = (signal.reason as { code: string }).code
        })
        return new Promise<string>(() => {})
      })
      const worker = await harness().worker(cut, { handlers: [waits], lease: SHORT_MS })
      const lost = nextEvent(worker, 'lost')
      await hf.enqueue(long, null)
      await lost
      expect(code).toBe('LEASE_LOST')
    })

    it('C021 what is held when its worker stops goes back uncharged', async () => {
      const hf = await harness().connect()
      const short = defineJob('short', { lease: SHORT_MS })
      const job = await hf.enqueue(short, null)
      const worker = await harness().worker(hf, { handlers: [handle(short, () => new Promise<string>(() => {}))] })
      await isOwn(hf, job, SHORT_MS)
      await worker.stop({ deadline: 0 })
      expect(await states(hf, [job])).toEqual(['queued after 0'])
    })

    if (!isSharedByProcesses(context)) return

    it('C021 SIGKILL: fast is recovered in about its two seconds while slow still stands, and slow in its ten', async () => {
      const hf = await harness().connect()
      const [fast, slow] = [defineJob('fast', { lease: FAST_MS }), defineJob('slow', { lease: SLOW_MS })]
      const [quick, lengthy] = [await hf.enqueue(fast, null), await hf.enqueue(slow, null)]
      const child = harness().spawn('types.mjs', JSON.stringify({ fast: FAST_MS, slow: SLOW_MS }))
      await isOwn(hf, quick, FAST_MS)
      await isOwn(hf, lengthy, SLOW_MS)
      await child.kill()
      const killedAt = harness().now()
      const handlers = [fast, slow].map((type) => handle(type, () => 'of the second'))
      // What the worker's own default makes of the two leases is part of the case.
      await hf.worker({ handlers, poll: 20 })
      expect(await quick.result({ timeout: '8s' })).toBe('of the second')
      const quickMs = (await lastStart(hf, quick)) - killedAt
      expect(await states(hf, [lengthy])).toEqual(['running after 1'])
      expect(quickMs).toBeLessThan(FAST_MS + SLACK_MS)
      expect(await lengthy.result({ timeout: '20s' })).toBe('of the second')
      const lengthyMs = (await lastStart(hf, lengthy)) - killedAt
      expect(lengthyMs).toBeGreaterThan(SLOW_MS / 2)
      expect(lengthyMs).toBeLessThan(SLOW_MS + SLACK_MS)
    }, 30_000)

    interface Scene {
      readonly hf: Holdfast
      readonly job: JobHandle<string>
      readonly child: Child
      free(): void
    }

    /** A child that holds the only job, of a type with the given lease, and a worker of this process that would take it. */
    async function scene(how: 'spinUntil' | 'wait', lease: number, workerLease: number): Promise<Scene> {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-type-lease-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const file = join(folder, 'free')
      const hf = await harness().connect()
      const options = JSON.stringify({ lease: workerLease, killGrace: '1h' })
      const child = harness().spawn('keeper.mjs', how, file, options, '', String(lease))
      await child.line('ready')
      const job = await hf.enqueue(task, null)
      await child.line('started')
      await harness().worker(hf, { handlers: [handle(task, () => 'of the second')], reap: 40 })
      return { hf, job, child, free: () => writeFileSync(file, '') }
    }

    it('C021 a main loop that is blocked keeps a short lease, renewed at the pace of its type', async () => {
      const { hf, job, free } = await scene('spinUntil', SHORT_MS, LONG_MS)
      await isOwn(hf, job, SHORT_MS)
      const blockedAt = harness().now()
      await eventually(async () => {
        const left = await leftMs(hf, job)
        expect(left).toBeLessThanOrEqual(SHORT_MS)
        return harness().now() - blockedAt > 4 * SHORT_MS
      }, 'four leases')
      free()
      expect(await job.result()).toBe('of the child')
      expect(await outcomes(hf, job)).toEqual(['succeeded'])
    })

    it(
      'C021 stopped past the lease of its type a process renews before anything else, and what it lost can write nothing',
      STOPPED_IN_A_CALL,
      async () => {
        const { hf, job, child } = await scene('wait', SHORT_MS, LONG_MS)
        await isOwn(hf, job, SHORT_MS)
        await stopBetweenWrites(hf, child)
        expect(await job.result()).toBe('of the second')
        const heard = child.lines.length
        child.signal('SIGCONT')
        expect(await child.line('signal')).toBe('signal LEASE_LOST')
        const first = child.lines.slice(heard).find((line) => /^(call|signal)/.test(line))
        // A renewal that was under way when it was stopped has told already.
        expect(['call lease.renew', 'signal LEASE_LOST']).toContain(first)
        child.tell('write')
        expect(await child.line('lost')).toBe(`lost ${job.id}`)
        expect(await outcomes(hf, job)).toEqual(['LEASE_EXPIRED', 'succeeded'])
      },
    )

    it('C021 stopped past the lease of its worker a process keeps the job of a type with a longer one', async () => {
      const { hf, job, child } = await scene('wait', LONG_MS, SHORT_MS)
      await eventually(async () => (await leftMs(hf, job)) > LONG_MS / 2, 'the lease is the longer one')
      child.signal('SIGSTOP')
      const stoppedAt = harness().now()
      await eventually(() => harness().now() - stoppedAt > 3 * SHORT_MS, 'three leases of the worker')
      child.signal('SIGCONT')
      child.tell('write')
      expect(await job.result()).toBe('of the child')
      expect(await outcomes(hf, job)).toEqual(['succeeded'])
    })
  })
}

/** Where one write at a time is possible, a process that is stopped in the middle of its own keeps everybody else from theirs. */
async function stopBetweenWrites(hf: Holdfast, child: Child): Promise<void> {
  for (;;) {
    child.signal('SIGSTOP')
    const written = hf.enqueue('other', null, { queue: 'elsewhere' }).then(() => true)
    if (await Promise.race([written, setTimeout(SHORT_MS / 3, false)])) return
    child.signal('SIGCONT')
    await written
  }
}

const states = (hf: Holdfast, jobs: readonly JobHandle<unknown>[]): Promise<string[]> =>
  Promise.all(
    jobs.map(async ({ id }) => {
      const job = await hf.get(id)
      return `${job?.state} after ${job?.attempts}`
    }),
  )

const outcomes = async (hf: Holdfast, { id }: JobHandle<unknown>): Promise<readonly string[]> =>
  (await hf.attempts(id)).map(({ outcome, failure }) => failure?.code ?? outcome ?? 'runs')

const lastStart = async (hf: Holdfast, { id }: JobHandle<unknown>): Promise<number> =>
  (await hf.attempts(id)).at(-1)?.startedAt ?? 0
