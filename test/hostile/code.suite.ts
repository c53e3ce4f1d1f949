/** The caller's own code at its worst: listeners, schemas, loggers, inspectors and handlers that throw where they are called. */
import { type AppContext, defineJob, type Handler, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { SuiteContext } from '../conformance/harness.ts'
import { codeOf, eventsOf, gate, rejection, within } from '../support/event.ts'

const task = defineJob<unknown>('task', { retry: retry.none() })

const broken = (message: string) => (): never => {
  throw new Error(message)
}

/** A schema as a library would give it, with an answer that none would. */
const schemaOf = (validate: (value: unknown) => unknown) =>
  ({ '~standard': { version: 1, vendor: 'test', validate: validate as () => { value: unknown } } }) as const

const ANSWERS: readonly [name: string, validate: (value: unknown) => unknown][] = [
  ['throws', broken('the schema is broken')],
  ['gives null', () => null],
  ['resolves to nothing', () => Promise.resolve(undefined)],
  [
    'gives issues that cannot be read',
    () => ({
      get issues(): never {
        throw new Error('the schema is broken')
      },
    }),
  ],
]

/** Two levels of reference a level: 2^60 leaves when written out. */
function manyfold(): unknown {
  let value: unknown = [1]
  for (let level = 0; level < 60; level += 1) value = [value, value]
  return value
}

export function hostileCodeSuite({ harness }: SuiteContext): void {
  async function endsDead(handler: Handler<AppContext>, input: unknown = 1): Promise<unknown> {
    const hf = await harness().connect()
    const worker = await harness().worker(hf, { handlers: [handler] })
    const job = await hf.enqueue('task', input, { retry: retry.none() })
    const error = await rejection(within(job.result(), 'the job ends'))
    expect(error.code).toBe('JOB_DEAD')
    // Or it would take the next job, which is for another handler.
    await worker.stop()
    return (await hf.get(job.id))?.lastFailure
  }

  describe('hostile code', () => {
    for (const [how, listener] of [
      ['throws', broken('a listener')],
      ['rejects', () => Promise.reject(new Error('a listener'))],
    ] as const) {
      it(`C124 a listener that ${how} holds up no job and no other listener`, async () => {
        const hf = await harness().connect()
        const handlers = [
          handle(task, (n) => {
            if (n === 0) throw new Error('as it should')
          }),
        ]
        const worker = await harness().worker(hf, { handlers, concurrency: 3 })
        for (const event of ['completed', 'failed', 'dead'] as const) worker.on(event, listener as () => void)
        const heard = [eventsOf(worker, 'completed'), eventsOf(worker, 'dead')] as const
        const jobs = await hf.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ job: task, input: n % 2 })))
        await within(Promise.allSettled(jobs.map((job) => job.result())), 'all jobs end')
        expect((await hf.stats()).counts).toMatchObject({ completed: 10, dlq: 10 })
        expect(heard.map(({ length }) => length)).toEqual([10, 10])
      })
    }

    for (const [how, validate] of ANSWERS) {
      it(`a schema that ${how} fails its job alone`, async () => {
        const schema = schemaOf(validate)
        const reading = defineJob('task', { input: schema })
        expect(await endsDead(handle(reading, () => 1))).toMatchObject({ code: 'BAD_PAYLOAD' })
        const writing = defineJob('task', { output: schema })
        expect(await endsDead(handle(writing, async () => 1))).toMatchObject({ code: 'BAD_OUTPUT' })
        expect(await codeOf((await harness().connect()).enqueue(reading, 1))).toBe('VALIDATION_FAILED')
      })
    }

    it('a context used after the end, by a handler that awaits nothing, harms nobody', async () => {
      const hf = await harness().connect()
      const late = gate()
      const used = gate()
      const handler = handle(task, (_, ctx) => {
        void ctx.progress(() => 'cannot be kept')
        void late.passed.then(() => {
          void ctx.progress(1)
          void ctx.enqueue('task', 1)
          void ctx.enqueue('', 1)
          used.open()
        })
        return 'done'
      })
      await harness().worker(hf, { handlers: [handler] })
      expect(await (await hf.enqueue(task, 1)).result()).toBe('done')
      late.open()
      await used.passed
      // The runner fails on rejections that nobody handles; they are known one turn later.
      await new Promise(setImmediate)
      expect((await hf.stats()).total).toBe(1)
    })

    it('a logger that throws stops nothing, and what is no logger is refused', async () => {
      const child = () => logger
      const levels = {
        trace: broken('t'),
        debug: broken('d'),
        info: broken('i'),
        warn: broken('w'),
        error: broken('e'),
      }
      const logger = { ...levels, fatal: broken('f'), isLevelEnabled: broken('l'), child } as never
      const hf = await harness().connect({ logger })
      const handlers = [
        handle(task, (n, ctx) => {
          ctx.log.info('a line')
          if (n === 0) throw new Error('as it should')
        }),
      ]
      await harness().worker(hf, { handlers })
      const jobs = await hf.enqueueMany(Array.from({ length: 10 }, (_, n) => ({ job: task, input: n % 2 })))
      await within(Promise.allSettled(jobs.map((job) => job.result())), 'all jobs end')
      expect((await hf.stats()).counts).toMatchObject({ completed: 5, dlq: 5 })
      expect(await codeOf(harness().connect({ logger: console as never }))).toBe('INVALID_ARGUMENT')
    })

    it('an inspector that throws stops nothing', async () => {
      const hf = await harness().connect({ inspect: broken('inspect') })
      await harness().worker(hf, { handlers: [handle(task, (n) => n)] })
      expect(await within((await hf.enqueue(task, 5)).result(), 'the job ends')).toBe(5)
    })

    it('a value that cannot be read is the fault of the job, or of the caller', async () => {
      const trap = { get inside(): never { throw new Error('trap') } } // biome-ignore format: one line says it
      expect(await endsDead(handle(task, () => trap))).toMatchObject({ code: 'BAD_OUTPUT' })
      expect(await codeOf((await harness().connect()).enqueue(task, trap))).toBe('INVALID_PAYLOAD')
    })

    it('options that are no object, or have a name that no release knows, are refused', async () => {
      const hf = await harness().connect()
      const worker = await harness().worker(hf, { handlers: [handle(task, (n) => n)] })
      const job = await hf.enqueue(task, 1)
      const handlers = [handle(task, () => 1)]
      for (const options of [null, 5, { misspelt: 1 }] as never[]) {
        const calls: readonly (() => unknown)[] = [
          () => hf.enqueue(task, 1, options),
          () => hf.list(options),
          () => hf.cancel(job.id, options),
          () => hf.replay(job.id, options),
          () => job.result(options),
          () => hf.worker(options),
          () => hf.worker({ handlers, queues: options }),
          () => hf.worker({ handlers, queues: { mail: options } }),
          () => worker.stop(options),
        ]
        expect(await Promise.all(calls.map(codeOf))).toEqual(calls.map(() => 'INVALID_ARGUMENT'))
      }
      expect(await codeOf(() => hf.require(null as never))).toBe('INVALID_ARGUMENT')
    })

    it('a thrown object that refers to its parts many times over is described in bounded time', async () => {
      const handler = handle(task, () => {
        throw manyfold()
      })
      expect(await endsDead(handler)).toMatchObject({ code: 'HANDLER_ERROR' })
    })
  })
}
