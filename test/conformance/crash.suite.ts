/** Processes that die, or stand still, while they hold jobs or make them. Assertions 31–34, 70. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineJob, handle } from 'holdfast'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually, within } from '../support/event.ts'
import { isSharedByProcesses, type SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const LEASE_MS = 700

function effectFile(): { path: string; lines(): string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-effects-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'effects')
  appendFileSync(path, '')
  return {
    path,
    lines: () =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
  }
}

/** Moments at which processes are killed, spread over what they do; printed when the test fails. */
const moments = (count: number, spread: number): number[] =>
  Array.from({ length: count }, () => Math.floor(Math.random() * spread))

export function crashSuite(context: SuiteContext): void {
  if (!isSharedByProcesses(context)) return
  const { harness } = context

  describe('crash', () => {
    it('31 a job whose process is killed before its handler ran goes to another worker after the lease', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue(task, 'x')
      const child = harness().spawn('claim.mjs', String(LEASE_MS))
      await child.line('claimed')
      await child.kill()
      expect((await hf.get(job.id))?.state).toBe('running')
      await harness().worker(hf, { handlers: [handle(task, () => 'of the second')], reap: 40 })
      expect(await job.result()).toBe('of the second')
      const [first, second] = await hf.attempts(job.id)
      expect(first).toMatchObject({ workerId: 'child', outcome: 'crashed', failure: { code: 'LEASE_EXPIRED' } })
      expect(second).toMatchObject({ attempt: 2, outcome: 'succeeded' })
      expect((second?.startedAt ?? 0) - (first?.startedAt ?? 0)).toBeGreaterThanOrEqual(LEASE_MS)
    })

    it('32 a job whose process is killed between effect and acknowledgement runs again', async () => {
      const hf = await harness().connect()
      const effects = effectFile()
      const job = await hf.enqueue(task, 'x')
      const child = harness().spawn('work.mjs', String(LEASE_MS), effects.path, 'hold')
      await child.line('effect')
      await child.kill()
      expect(effects.lines()).toEqual([job.id])
      const handler = handle(task, (_input, ctx) => appendFileSync(effects.path, `${ctx.jobId}\n`))
      await harness().worker(hf, { handlers: [handler], reap: 40 })
      await job.result()
      expect(effects.lines()).toEqual([job.id, job.id])
    })

    it('32 a process killed at any moment of its work loses no effect', async () => {
      const COUNT = 200
      const hf = await harness().connect()
      const effects = effectFile()
      const jobs = await hf.enqueueMany(
        Array.from({ length: COUNT }, (_, n) => ({
          job: task,
          input: n,
          options: { maxAttempts: 99, maxCrashes: 99 },
        })),
      )
      for (const moment of moments(3, 15)) {
        // A fast store may have let the child before end everything.
        if ((await hf.stats()).counts.completed === COUNT) break
        const child = harness().spawn('work.mjs', String(LEASE_MS), effects.path, 'go')
        await child.line('effect')
        await eventually(() => child.lines.length > moment || effects.lines().length >= COUNT, `${moment} more effects`)
        await child.kill()
      }
      const handler = handle(task, (_input, ctx) => appendFileSync(effects.path, `${ctx.jobId}\n`))
      await harness().worker(hf, { handlers: [handler], reap: 40 })
      await Promise.all(jobs.map((job) => job.result()))
      expect(new Set(effects.lines())).toEqual(new Set(jobs.map(({ id }) => id)))
      expect((await hf.stats()).counts.completed).toBe(COUNT)
    })

    it('33 a process frozen past its lease and woken can write nothing', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue(task, 'x')
      const child = harness().spawn('claim.mjs', String(LEASE_MS))
      await child.line('claimed')
      child.signal('SIGSTOP')
      await harness().worker(hf, { handlers: [handle(task, () => 'of the second')], reap: 40 })
      expect(await job.result()).toBe('of the second')
      const before = await hf.get(job.id)
      child.signal('SIGCONT')
      child.tell('settle')
      expect(await child.line('verdict')).toBe('verdict leaseLost leaseLost leaseLost')
      expect(await hf.get(job.id)).toEqual(before)
      expect(await hf.attempts(job.id)).toHaveLength(2)
    })

    it('33 a worker frozen past its lease and woken tells its handler and stores no outcome', async () => {
      const hf = await harness().connect()
      const effects = effectFile()
      const job = await hf.enqueue(task, 'x')
      const child = harness().spawn('work.mjs', String(LEASE_MS), effects.path, 'untilTold')
      await child.line('effect')
      child.signal('SIGSTOP')
      await harness().worker(hf, { handlers: [handle(task, () => 'of the second')], reap: 40 })
      expect(await job.result()).toBe('of the second')
      child.signal('SIGCONT')
      child.tell('end')
      expect(await child.line('lost')).toBe(`lost ${job.id}`)
      expect((await hf.get(job.id))?.output).toBe('of the second')
      expect(child.lines).not.toContain(`completed ${job.id}`)
    })

    it('34 a connection that is lost while it claims leaves every job unclaimed or recoverable', async () => {
      const hf = await harness().connect()
      const options = { maxAttempts: 999, maxCrashes: 999 }
      const jobs = await hf.enqueueMany(Array.from({ length: 200 }, (_, n) => ({ job: task, input: n, options })))
      for (const moment of moments(4, 60)) {
        const child = harness().spawn('churn.mjs', String(LEASE_MS))
        await child.line('turn')
        await eventually(() => child.lines.length > moment, `${moment} turns`)
        await child.kill()
        const { counts, total } = await hf.stats()
        expect([moment, total]).toEqual([moment, 200])
        expect(counts.dlq + counts.cancelled + counts.completed).toBe(0)
      }
      await harness().worker(hf, { handlers: [handle(task, () => 1)], reap: 40, concurrency: 50 })
      await within(Promise.all(jobs.map((job) => job.result())), 'all jobs completed')
      expect((await hf.stats()).counts).toMatchObject({ completed: 200 })
    })

    it('70 a process killed at any moment of an enqueue leaves no key without its job', async () => {
      const hf = await harness().connect()
      for (const [round, moment] of moments(4, 40).entries()) {
        const child = harness().spawn('enqueue.mjs', `round-${round}`)
        await child.line('created')
        await eventually(() => child.lines.length > moment, `${moment} enqueues`)
        await child.kill()
        const acknowledged = child.lines.map((line) => line.split(' '))
        for (const [, key = '', id = ''] of acknowledged) {
          expect([moment, await hf.get(id)]).toMatchObject([moment, { id, idempotencyKey: key, state: 'queued' }])
        }
        // Those that were under way when the process died: either there with their job, or free.
        for (let n = 0; n < acknowledged.length + 20; n += 1) {
          const key = `round-${round}-${n}`
          const again = await hf.enqueue('task', null, { idempotencyKey: key })
          expect(await hf.get(again.id)).toMatchObject({ idempotencyKey: key, state: 'queued' })
          if (n < acknowledged.length) expect([key, again.deduplicated]).toEqual([key, true])
        }
      }
    })
  })
}
