/** What handlers say of their jobs, stored in bounds: progress and log lines, inline and in threads, fenced by the lease. */
import {
  type AppContext,
  defineJob,
  type Handler,
  handle,
  inThread,
  type JobContext,
  retry,
  type Worker,
  type WorkerOptions,
} from 'holdfast'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import type { MessageType } from '#dist/src/backends/protocol/index.js'
import type { SuiteContext } from '../conformance/harness.ts'
import { codeOf, eventually, gate, within } from '../support/event.ts'
import { over } from '../support/faulty-backend.ts'
import { hostileLogs } from '../support/hostile-logs.mjs'

const task = defineJob<string, unknown>('task')
const THREADS = new URL('../support/handlers/conformance.mjs', import.meta.url)

type Run = (input: string, ctx: JobContext<AppContext>) => unknown

/** Counts what is asked of a store: messages of each type, and turns that carry a note. */
function counting(counts: Map<string, number>): (backend: Backend) => Backend {
  const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1)
  return (backend) =>
    over(backend, {
      call: (type, request) => {
        count(type satisfies MessageType)
        if ('settlements' in request && request.settlements.some(({ note }) => note !== undefined)) count('noted turn')
        return backend.call(type, request)
      },
    })
}

export function logSuite({ harness }: SuiteContext): void {
  const client = harness

  /** One job of that handler, to its end. */
  async function ran(run: Run | Handler<AppContext>, options: Partial<WorkerOptions> = {}, input = 'x') {
    const hf = await client().connect()
    const handler = typeof run === 'function' ? handle(task, run) : run
    const worker: Worker = await client().worker(hf, { handlers: [handler], ...options })
    const job = await hf.enqueue('task', input)
    const outcome = await within(
      job.result().catch((error: unknown) => error),
      'the job ends',
    )
    await worker.stop()
    return { hf, id: job.id, outcome }
  }

  describe('logs of jobs', () => {
    it('WS-52 are stored in order with level, fields and attempt, and read by any client', async () => {
      const { id } = await ran((_, ctx) => {
        ctx.log.debug('not stored')
        ctx.log.info({ n: 1, deep: { list: [1, 'a'] } }, 'first')
        ctx.log.warn('second')
        ctx.log.error(Object.assign(new Error('third'), { code: 'E_X' }))
        ctx.log.fatal({ err: new TypeError('inner') }, 'fourth')
      })
      const lines = await (await client().connect()).logs(id)
      expect(lines.map(({ level, msg, attempt, truncated }) => [level, msg, attempt, truncated])).toEqual([
        ['info', 'first', 1, false],
        ['warn', 'second', 1, false],
        ['error', 'third', 1, false],
        ['fatal', 'fourth', 1, false],
      ])
      expect(lines[0]?.fields).toEqual({ n: 1, deep: { list: [1, 'a'] } })
      expect(lines[2]?.fields).toMatchObject({ err: { name: 'Error', code: 'E_X', message: 'third' } })
      expect(lines[3]?.fields).toMatchObject({ err: { name: 'TypeError', message: 'inner' } })
      for (const { at } of lines) expect(Math.abs(at - client().now())).toBeLessThan(60_000)
    })

    it('WS-52 come page by page, and what is behind a cursor', async () => {
      const { hf, id } = await ran((_, ctx) => {
        for (let line = 0; line < 7; line += 1) ctx.log.info(`line ${line}`)
      })
      const first = await hf.logs(id, { limit: 5 })
      expect(first.map(({ msg }) => msg)).toEqual([0, 1, 2, 3, 4].map((line) => `line ${line}`))
      const cursor = first.at(-1)?.cursor ?? null
      expect((await hf.logs(id, { after: cursor })).map(({ msg }) => msg)).toEqual(['line 5', 'line 6'])
      expect(await hf.logs('default/01JDY5ABCDEFGHJKMNPQRSTVWX')).toEqual([])
      expect(await codeOf(hf.logs(id, { after: 'x' }))).toBe('INVALID_ARGUMENT')
      expect(await codeOf(hf.logs(id, { limit: 501 }))).toBe('INVALID_ARGUMENT')
    })

    it('WS-52 keep the newest lines over all attempts, or none', async () => {
      const { hf, id } = await ran(
        (_, ctx) => {
          for (let line = 0; line < 4; line += 1) ctx.log.info(`${ctx.attempt}.${line}`)
          if (ctx.attempt === 1) throw new Error('again')
        },
        { keepLogs: { lines: 6, level: 'info' }, retry: retry.fixed(2, 0) },
      )
      const kept = await hf.logs(id)
      expect(kept.map(({ msg }) => msg)).toEqual(['1.2', '1.3', '2.0', '2.1', '2.2', '2.3'])
      expect(kept.map(({ attempt }) => attempt)).toEqual([1, 1, 2, 2, 2, 2])
      const none = await ran((_, ctx) => ctx.log.error('said to the process alone'), { keepLogs: 0 })
      expect(await none.hf.logs(none.id)).toEqual([])
    })

    it('WS-52 bound every line, and run no code of what is logged', async () => {
      let calls = 0
      const hostile = {
        get secret() {
          calls += 1
          return 'x'
        },
        toJSON: () => {
          calls += 1
          return {}
        },
      }
      const { hf, id } = await ran((_, ctx) => {
        ctx.log.info({ a: 1, big: '€'.repeat(100_000), list: Array(10_000).fill('x') }, 'é'.repeat(5_000))
        ctx.log.info({ hostile, fn: () => 1, n: 1n }, 'odd')
        ctx.log.info('\u2028 \ud800 𝒳 \u0000\n')
      })
      const [big, odd, unicode] = await hf.logs(id)
      expect(big).toMatchObject({ truncated: true, fields: { a: 1 } })
      expect(Buffer.byteLength(JSON.stringify(big))).toBeLessThan(2_300)
      expect(odd?.fields).toEqual({ hostile: { secret: '[getter]', toJSON: '[function]' }, fn: '[function]', n: '1' })
      expect(unicode?.msg).toBe('\u2028 \ufffd 𝒳 \u0000\n')
      expect(calls).toBe(0)
    })

    for (const [where, handler] of [
      [
        'inline',
        handle(task, (_, ctx) => {
          const { seen, values } = hostileLogs()
          for (const said of values) Reflect.apply(ctx.log.error, ctx.log, said)
          return seen.ran
        }),
      ],
      ['in a thread', inThread(task, THREADS)],
      ['in a process', inThread(task, THREADS, { isolation: 'process' })],
    ] as const) {
      it(`O8 fail no attempt ${where}, whatever is logged, and run no code of it for a logger either`, async () => {
        const written: string[] = []
        const logger = pino({ level: 'error' }, { write: (line: string) => written.push(line) })
        const hf = await client().connect({ logger })
        const worker = await client().worker(hf, { handlers: [handler] })
        const job = await hf.enqueue('task', where === 'inline' ? 'x' : { act: 'saysOddThings' }, {
          retry: retry.none(),
        })
        expect(await within(job.result(), 'the job ends')).toBe(0)
        await worker.stop()
        const expected = hostileLogs().values.length
        expect([written.length, (await hf.logs(job.id)).length]).toEqual([expected, expected])
      })
    }

    it('WS-52 go with their job, and no list shows them', async () => {
      const hf = await client().connect({ keepCompleted: 1_000 })
      const worker = await client().worker(hf, {
        handlers: [handle(task, (_, ctx) => ctx.log.info({ token: 'hush' }, 'canary'))],
      })
      const job = await hf.enqueue(task, 'x')
      await job.result()
      await worker.stop()
      expect(JSON.stringify(await hf.list())).not.toMatch(/canary|hush/)
      expect(await hf.logs(job.id)).toHaveLength(1)
      await client().advance(2_000)
      expect((await hf.maintain()).pruned).toBe(1)
      expect(await hf.logs(job.id)).toEqual([])
    })

    it('C134 lines of a hundred jobs in threads stay in order, each with its job', async () => {
      const hf = await client().connect()
      const handlers = [inThread(defineJob('thread'), THREADS)]
      const worker = await client().worker(hf, { handlers, concurrency: 2, keepLogs: 20 })
      const jobs = await hf.enqueueMany(
        Array.from({ length: 30 }, (_, n) => ({ job: 'thread', input: { act: 'talks', value: n, lines: 25 } })),
      )
      await within(Promise.all(jobs.map((job) => job.result())), 'all jobs end')
      await worker.stop()
      for (const [n, { id }] of jobs.entries()) {
        const lines = await hf.logs(id)
        expect(lines.map(({ msg }) => msg)).toEqual(Array.from({ length: 20 }, (_, line) => `${n}: ${line + 5}`))
        expect((await hf.get(id))?.progress).toEqual({ n, done: 999 })
      }
    })
  })

  describe('last words', () => {
    it('WS-52 of a thread that dies are stored with its attempt', async () => {
      const hf = await client().connect()
      const handlers = [inThread(defineJob('thread'), THREADS)]
      const worker = await client().worker(hf, { handlers })
      const job = await hf.enqueue('thread', { act: 'lastWords' }, { retry: retry.none() })
      expect(await codeOf(within(job.result(), 'the job ends'))).toBe('JOB_DEAD')
      await worker.stop()
      expect((await hf.get(job.id))?.lastFailure?.code).toBe('PANIC')
      expect((await hf.logs(job.id)).map(({ level, msg }) => [level, msg])).toEqual([['fatal', 'last words']])
    })
  })

  describe('progress', () => {
    for (const [where, handler] of [
      [
        'inline',
        handle(task, (_, ctx) => {
          for (let done = 0; done < 100_000; done += 1) void ctx.progress({ done })
        }),
      ],
      ['in a thread', inThread(task, new URL('../support/handlers/floods.mjs', import.meta.url))],
    ] as const) {
      it(`WS-52 a hundred thousand values of a handler ${where} cost a few writes, and the last one is stored`, async () => {
        const counts = new Map<string, number>()
        const hf = await client().connect({ wrap: counting(counts) })
        const worker = await client().worker(hf, { handlers: [handler] })
        const job = await hf.enqueue(task, 'x')
        const startedAt = performance.now()
        await within(job.result(), 'the job ends', 20_000)
        const intervals = (performance.now() - startedAt) / 250
        await worker.stop()
        expect(counts.get('job.note') ?? 0).toBeLessThanOrEqual(2 + 2 * intervals)
        expect((await hf.get(job.id))?.progress).toEqual({ done: 99_999 })
      })
    }

    it('WS-52 is read while the job runs, latest value first', async () => {
      const hf = await client().connect()
      const seen = gate()
      const job = await hf.enqueue(task, 'x')
      await client().worker(hf, {
        handlers: [
          handle(task, async (_, ctx) => {
            await ctx.progress({ half: false })
            ctx.log.info('under way')
            void ctx.progress({ half: true })
            await seen.passed
          }),
        ],
      })
      const isThere = async () =>
        JSON.stringify((await hf.get(job.id))?.progress) === '{"half":true}' && (await hf.logs(job.id)).length === 1
      await eventually(isThere, 'progress and line of a running job')
      expect((await hf.get(job.id))?.state).toBe('running')
      seen.open()
      await job.result()
    })

    it('C003 is refused once the lease is lost, with all that is logged after', async () => {
      const hf = await client().connect()
      const other = await client().connect()
      const [started, stolen, told] = [gate(), gate(), gate<readonly (string | undefined)[]>()]
      const job = await hf.enqueue(task, 'x')
      const handler = handle(task, async (_, ctx) => {
        ctx.log.info('before')
        await ctx.progress('mine')
        started.open()
        await stolen.passed
        ctx.log.info('after')
        // Within the interval of the last write a value may be taken on trust, but not for ever.
        const refused = await eventually(() => codeOf(ctx.progress('late')).catch(() => null), 'a refusal')
        told.open([refused, await codeOf(ctx.progress('later'))])
      })
      const worker = await client().worker(hf, { handlers: [handler] })
      await started.passed
      expect(await other.cancel(job.id, { force: true })).toBe('cancelled')
      stolen.open()
      expect(await within(told.passed, 'the handler')).toEqual(['LEASE_LOST', 'LEASE_LOST'])
      await worker.stop()
      expect((await hf.get(job.id))?.progress).toBe('mine')
      expect((await hf.logs(job.id)).map(({ msg }) => msg)).toEqual(['before'])
    })

    it('WS-52 of a job that says nothing costs nothing, and the last words of one that does go with its end', async () => {
      const counts = new Map<string, number>()
      const hf = await client().connect({ wrap: counting(counts) })
      const worker = await client().worker(hf, {
        handlers: [handle(task, (input, ctx) => (input === 'x' ? input : ctx.log.info('a word')))],
      })
      await (await hf.enqueue(task, 'x')).result()
      expect([counts.get('job.note'), counts.get('noted turn')]).toEqual([undefined, undefined])
      const job = await hf.enqueue(task, 'speak')
      await job.result()
      await worker.stop()
      expect([counts.get('job.note'), counts.get('noted turn')]).toEqual([undefined, 1])
      expect(await hf.logs(job.id)).toHaveLength(1)
    })
  })
}
