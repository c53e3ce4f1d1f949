/** What users of job systems were bitten by: leases and crashes, retries, priorities, duplicates, errors. Each test has the number of its case. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineJob, handle, inThread, type JobPage, retry } from 'holdfast'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isSharedByProcesses, type SuiteContext } from '../conformance/harness.ts'
import { eventually, gate, nextEvent, within } from '../support/event.ts'

const task = defineJob<unknown>('task')
const LEASE_MS = 400
/** Renewed in time on a busy machine, too. */
const HEALTHY_LEASE_MS = 1_200
/** What the default concurrency of a worker holds. */
const HELD = 6
const BEHAVIOUR = new URL('../support/handlers/thread-behaviour.mjs', import.meta.url)

function runFile(): { readonly path: string; runs(): readonly string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-runs-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'runs')
  appendFileSync(path, '')
  return {
    path,
    runs: () =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
  }
}

export function casesSuite(context: SuiteContext): void {
  const { harness } = context

  describe('cases of leases and crashes', () => {
    it('C007 a handler that awaits several leases is one run of one attempt', async () => {
      const hf = await harness().connect()
      let runs = 0
      const job = await hf.enqueue(task, 1)
      const slow = handle(task, async () => {
        runs += 1
        await new Promise((resolve) => setTimeout(resolve, 4 * HEALTHY_LEASE_MS))
        return 'done'
      })
      await harness().worker(hf, { handlers: [slow], lease: HEALTHY_LEASE_MS, reap: 50 })
      await harness().worker(await harness().connect(), { handlers: [slow], lease: HEALTHY_LEASE_MS, reap: 50 })
      expect(await job.result({ timeout: '15s' })).toBe('done')
      expect(runs).toBe(1)
      expect(await hf.attempts(job.id)).toMatchObject([{ attempt: 1, outcome: 'succeeded' }])
    })

    if (isSharedByProcesses(context)) {
      it('C018 a job that was lost between its end and its settlement runs again, and those behind a limit of one follow in order', async () => {
        const hf = await harness().connect()
        const file = runFile()
        await hf.setPolicy('default', { maxInFlight: 1 })
        const jobs = await hf.enqueueMany([1, 2, 3].map((n) => ({ job: task, input: n })))
        const child = harness().spawn('work.mjs', String(LEASE_MS), file.path, 'hold')
        await eventually(() => file.runs().length === 1, 'the first is under way')
        await child.kill()
        const order: unknown[] = []
        const worker = { handlers: [handle(task, (n) => order.push(n))], reap: 50, lease: LEASE_MS, concurrency: 3 }
        await harness().worker(hf, worker)
        await within(Promise.all(jobs.map((job) => job.result({ timeout: '10s' }))), 'all three', 12_000)
        expect(order).toEqual([1, 2, 3])
        expect((await hf.stats()).counts).toMatchObject({ completed: 3, running: 0 })
      })

      it('C008 all jobs of a killed process run elsewhere after the lease, by themselves', async () => {
        const hf = await harness().connect()
        const file = runFile()
        const jobs = await hf.enqueueMany(Array.from({ length: HELD }, (_, n) => ({ job: task, input: n })))
        const child = harness().spawn('work.mjs', String(LEASE_MS), file.path, 'hold')
        await eventually(() => file.runs().length === HELD, 'all are under way')
        await child.kill()
        await harness().worker(hf, {
          handlers: [handle(task, () => 'again')],
          concurrency: 20,
          reap: 50,
          lease: LEASE_MS,
        })
        const results = await Promise.all(jobs.map((job) => job.result({ timeout: '10s' })))
        expect(new Set(results)).toEqual(new Set(['again']))
      })
    }

    it('C012 the limit of a key holds for as long as a job runs, however many leases that takes', async () => {
      const hf = await harness().connect()
      await hf.setPolicy('default', { maxPerKey: 1 })
      let running = 0
      const together: number[] = []
      const exclusive = handle(task, async (isSlow) => {
        running += 1
        together.push(running)
        if (isSlow === true) await new Promise((resolve) => setTimeout(resolve, 3 * HEALTHY_LEASE_MS))
        running -= 1
      })
      const options = { handlers: [exclusive], lease: HEALTHY_LEASE_MS, reap: 50 }
      const keyed = { concurrencyKey: 'tenant' }
      const jobs = [await hf.enqueue(task, true, keyed), await hf.enqueue(task, false, keyed)]
      await harness().worker(hf, options)
      await harness().worker(await harness().connect(), options)
      await within(Promise.all(jobs.map((job) => job.result({ timeout: '15s' }))), 'both', 16_000)
      expect(together).toEqual([1, 1])
    })

    it('C010 a job that ends its thread every time is dead after its crashes, and fifty others are done', async () => {
      const hf = await harness().connect()
      const poison = defineJob<unknown>('poison', { retry: retry.fixed(3, 1), maxCrashes: 3 })
      const good = await hf.enqueueMany(
        Array.from({ length: 50 }, (_, value) => ({ job: poison, input: { act: 'echo', value } })),
      )
      const bad = await hf.enqueue(poison, { act: 'exit', code: 9 })
      const worker = await harness().worker(hf, { handlers: [inThread(poison, BEHAVIOUR)], concurrency: 2 })
      await within(Promise.all(good.map((job) => job.result({ timeout: '20s' }))), 'the fifty', 25_000)
      if ((await hf.get(bad.id))?.state !== 'dlq') await nextEvent(worker, 'dead')
      expect(await hf.get(bad.id)).toMatchObject({ state: 'dlq', attempts: 3 })
      for (const { failure } of await hf.attempts(bad.id)) expect(failure?.code).toBe('PANIC')
      expect((await hf.stats()).counts).toMatchObject({ completed: 50, dlq: 1 })
    })

    it('C016 an operator cancels a running job: one outcome, and the worker goes on', async () => {
      const hf = await harness().connect()
      const [entered, left] = [gate(), gate()]
      const stubborn = handle(task, async (input, { signal }) => {
        if (input !== 'stubborn') return 'fine'
        entered.open()
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        left.open()
        throw new Error('an error of the cancelled handler')
      })
      const worker = await harness().worker(hf, { handlers: [stubborn], lease: LEASE_MS, concurrency: 1 })
      const job = await hf.enqueue(task, 'stubborn')
      await entered.passed
      const ended = nextEvent(worker, 'cancelled')
      expect(await hf.cancel(job.id)).toBe('requested')
      await within(left.passed, 'the signal')
      await ended
      expect(await hf.get(job.id)).toMatchObject({ state: 'cancelled', attempts: 1 })
      expect(await hf.attempts(job.id)).toMatchObject([{ outcome: 'cancelled' }])
      expect(await (await hf.enqueue(task, 'next')).result()).toBe('fine')
    })
  })

  describe('cases of retry and priority', () => {
    it('C098 a delay alone is no silent single attempt: a policy without its number of attempts is refused by name', async () => {
      const hf = await harness().connect()
      for (const policy of [{ kind: 'fixed', delay: 5 }, { backoff: 1_000 }, 5]) {
        const refused = hf.enqueue(task, 1, { retry: policy as never })
        await expect(refused).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          details: { field: expect.stringContaining('retry') },
        })
      }
      const job = await hf.enqueue(task, 1)
      expect((await hf.get(job.id))?.maxAttempts).toBe(7)
    })

    it('C099 three attempts are three runs, with the gaps of the policy, and the last one knows that it is', async () => {
      const hf = await harness().connect()
      const seen: (readonly [attempt: number, isLast: boolean])[] = []
      const policy = retry.exponential({ attempts: 3, base: 1_000, jitter: 0 })
      const job = await hf.enqueue(task, 1, { retry: policy })
      const failing = handle(task, (_input, { attempt, isLastAttempt }) => {
        seen.push([attempt, isLastAttempt])
        throw new Error('no')
      })
      const gaps: number[] = []
      for (let run = 0; run < 3; run += 1) {
        await hf.runUntilEmpty({ handlers: [failing] })
        const { state, runAt, lastFailure } = (await hf.get(job.id)) ?? {}
        expect(lastFailure?.code).toBe('HANDLER_ERROR')
        if (state !== 'retry_wait') break
        const { finishedAt } = (await hf.attempts(job.id)).at(-1) ?? {}
        gaps.push((runAt ?? 0) - (finishedAt ?? 0))
        await harness().advance(2_000)
      }
      expect(seen).toEqual([
        [1, false],
        [2, false],
        [3, true],
      ])
      expect(gaps).toEqual([1_000, 2_000])
      expect(await hf.get(job.id)).toMatchObject({ state: 'dlq', dlqCode: 'MAX_ATTEMPTS_EXCEEDED' })
    })

    it('C103 a crash and a failure spend one budget, and the history tells one from the other', async () => {
      const hf = await harness().connect()
      const mixed = defineJob<unknown>('mixed', { retry: retry.fixed(4, '1h') })
      const job = await hf.enqueue(mixed, { act: 'exit', code: 1 })
      const handlers = [inThread(mixed, BEHAVIOUR)]
      await hf.runUntilEmpty({ handlers })
      const throwing = handle(mixed, () => {
        throw new Error('thrown')
      })
      for (const kind of [[throwing], handlers, [throwing]]) {
        await harness().advance(3_600_001)
        await hf.runUntilEmpty({ handlers: kind })
      }
      const attempts = await hf.attempts(job.id)
      expect(attempts.map(({ failure }) => failure?.code)).toEqual(['PANIC', 'HANDLER_ERROR', 'PANIC', 'HANDLER_ERROR'])
      expect(await hf.get(job.id)).toMatchObject({ state: 'dlq', dlqCode: 'MAX_ATTEMPTS_EXCEEDED', attempts: 4 })
    })

    it('C104 priority holds for what comes late, what was delayed and what is tried again', async () => {
      const hf = await harness().connect()
      await hf.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ job: task, input: `low ${n}` })))
      await hf.enqueue(task, 'delayed', { priority: 5, delay: '1s' })
      await hf.enqueue(task, 'retried', { priority: 5, retry: retry.fixed(2, 1_000) })
      const order: unknown[] = []
      let failed = false
      const one = handle(task, (input, { attempt }) => {
        order.push(input)
        if (input === 'retried' && attempt === 1) {
          failed = true
          throw new Error('first')
        }
      })
      const stopAfter = async (until: () => boolean) => {
        const worker = await harness().worker(hf, { handlers: [one], concurrency: 1, prefetch: 0 })
        await eventually(until, 'what was waited for')
        await worker.stop()
      }
      await stopAfter(() => failed)
      await harness().advance(2_000)
      await hf.enqueue(task, 'late', { priority: 5 })
      const before = order.length
      await hf.runUntilEmpty({ handlers: [one], concurrency: 1 })
      const rest = order.slice(before)
      expect(rest.slice(0, 3).toSorted()).toEqual(['delayed', 'late', 'retried'])
      expect(rest.slice(3)).toEqual([...rest.slice(3)].toSorted())
      expect(order.filter((input) => String(input).startsWith('low'))).toHaveLength(5)
    })

    it('C105 priority is strict: the others wait while more important jobs keep coming, and run when none come any more', async () => {
      const hf = await harness().connect()
      const lows = Array.from({ length: 10 }, (_, n) => `low ${n}`)
      const highs = Array.from({ length: 30 }, (_, n) => `high ${n}`)
      await hf.enqueueMany(lows.map((input) => ({ job: task, input })))
      const supply = highs.values()
      const order: unknown[] = []
      const next = async () => {
        const { value } = supply.next()
        if (value !== undefined) await hf.enqueue(task, value, { priority: 1 })
      }
      await next()
      const one = handle(task, async (input) => {
        order.push(input)
        await next()
      })
      await hf.runUntilEmpty({ handlers: [one], concurrency: 1, prefetch: 0 })
      expect(order).toEqual([...highs, ...lows])
    })

    it('C106 jobs keep their order through pause and resume', async () => {
      const hf = await harness().connect()
      const order: unknown[] = []
      for (const n of [1, 2, 3, 4]) {
        await hf.enqueue(task, n)
        await hf.pause('default')
        expect(await hf.runUntilEmpty({ handlers: [handle(task, (input) => order.push(input))] })).toBe(0)
        await hf.resume('default')
      }
      await hf.runUntilEmpty({ handlers: [handle(task, (input) => order.push(input))], concurrency: 1 })
      expect(order).toEqual([1, 2, 3, 4])
    })
  })

  describe('cases of duplicates', () => {
    it('C107 a used key says so, with id and state, for as long as its job is kept; then it is free', async () => {
      const hf = await harness().connect({ keepCompleted: '1h' })
      const first = await hf.enqueue(task, 1, { idempotencyKey: 'k' })
      await hf.runUntilEmpty({ handlers: [handle(task, () => 1)] })
      const second = await hf.enqueue(task, 2, { idempotencyKey: 'k' })
      expect([second.id, second.deduplicated, second.state]).toEqual([first.id, true, 'completed'])
      await harness().advance(2 * 3_600_000)
      await hf.maintain()
      const third = await hf.enqueue(task, 3, { idempotencyKey: 'k' })
      expect([third.id === first.id, third.deduplicated]).toEqual([false, false])
    })

    if (isSharedByProcesses(context)) {
      it('C109 four processes with two hundred enqueues each of fifty keys make fifty jobs, and all are told the same ids', async () => {
        const hf = await harness().connect()
        const children = Array.from({ length: 4 }, () => harness().spawn('keys.mjs', '200', '50'))
        await Promise.all(children.map((child) => child.line('ready')))
        for (const child of children) child.tell('go')
        const answers = await Promise.all(children.map((child) => child.line('answers')))
        const pairs = new Set(answers.flatMap((line) => JSON.parse(line.slice('answers '.length)) as string[]))
        expect(pairs.size).toBe(50)
        expect((await hf.stats()).total).toBe(50)
      })
    }
  })

  describe('cases of counting', () => {
    it('C138 what has ended is counted from the store, each job once, also when the observer is replaced half way', async () => {
      const jobs = 20_000
      const hf = await harness().connect({ keepCompleted: '1h' })
      for (let from = 0; from < jobs; from += 1_000)
        await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: task, input: from + n })))
      const handlers = [handle(task, () => null)]
      await hf.pause('default')
      const workers = await Promise.all(
        Array.from({ length: 8 }, () => harness().worker(hf, { handlers, concurrency: 4 })),
      )
      const drained = gate()
      let told = 0
      for (const worker of workers)
        worker.on('completed', () => {
          told += 1
          if (told === jobs) drained.open()
        })
      await hf.resume('default')
      await within(drained.passed, 'all have ended', 60_000)
      expect((await hf.stats()).counts.completed).toBe(jobs)

      const ids = new Set<string>()
      let observer = await harness().connect()
      let cursor: string | null = null
      do {
        const page: JobPage = await observer.list({ state: 'completed', limit: 500, cursor })
        for (const { id } of page.jobs) ids.add(id)
        cursor = page.cursor
        if (ids.size === jobs / 2) observer = await harness().connect()
      } while (cursor !== null)
      expect(ids.size).toBe(jobs)
    }, 90_000)
  })

  describe('cases of errors', () => {
    it('C120 whatever is thrown is a failure with a name, a message and a code', async () => {
      const hf = await harness().connect()
      const thrown: readonly unknown[] = [
        'x',
        42,
        null,
        undefined,
        { code: 7 },
        Symbol('s'),
        Object.freeze(new Error('frozen')),
        7n,
        () => 1,
        Number.NaN,
      ]
      for (const value of thrown) {
        const job = await hf.enqueue(task, null, { retry: retry.none() })
        await hf.runUntilEmpty({ handlers: [handle(task, () => Promise.reject(value))] })
        const { state, lastFailure } = (await hf.get(job.id)) ?? {}
        expect([String(value), state]).toEqual([String(value), 'dlq'])
        expect(lastFailure?.code).toMatch(/^[A-Z_]+$/)
        expect(lastFailure?.message).not.toBe('')
        expect(lastFailure?.message).toEqual(expect.any(String))
      }
    })

    it('C122 an error with functions, cycles and sockets comes out of a thread as itself', async () => {
      const hf = await harness().connect()
      const contract = defineJob<unknown>('thread')
      const job = await hf.enqueue(contract, { act: 'throws', message: 'the real one' }, { retry: retry.none() })
      await hf.runUntilEmpty({ handlers: [inThread(contract, BEHAVIOUR)] })
      const { lastFailure } = (await hf.get(job.id)) ?? {}
      expect(lastFailure).toMatchObject({ name: 'TypeError', message: 'the real one' })
    })
  })
}
