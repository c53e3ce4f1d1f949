/** Values that producers and handlers pass: dates, big integers, sizes, every script. Cases C112, C113, C117, C118, C120. */
import { defineJob, handle, inThread, type JobContext, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { SuiteContext } from '../conformance/harness.ts'
import { codeOf, rejection, within } from '../support/event.ts'
import oddOutput from '../support/handlers/odd-output.mjs'

const task = defineJob<unknown, unknown>('task', { retry: retry.none() })
const ODD_MODULE = new URL('../support/handlers/odd-output.mjs', import.meta.url)
const SCRIPTS = ['😀𝒳', 'שלום عربى', 'e\u0301\u0327', 'a\u2028b\u2029c', '\ufeffbom', 'NUL \u0000 in it', '漢字']

export function payloadSuite({ harness }: SuiteContext): void {
  /** What came of one job: what its handler was given, and what was given back. */
  async function through(input: unknown, run: (input: unknown, ctx: JobContext) => unknown = (value) => value) {
    const hf = await harness().connect()
    const given: unknown[] = []
    const handler = handle(task, (value, ctx) => {
      given.push(value)
      return run(value, ctx)
    })
    const worker = await harness().worker(hf, { handlers: [handler] })
    const job = await hf.enqueue(task, input, { metadata: { text: SCRIPTS.join(' ') } })
    const outcome = await within(
      job.result().catch((error: unknown) => error),
      'the job ends',
    )
    await worker.stop()
    return { hf, id: job.id, given: given[0], outcome }
  }

  describe('payloads and results', () => {
    it('C112 a Date is a Date for the handler and in the result', async () => {
      const { given, outcome } = await through({ d: new Date(0), list: [new Date(86_400_000)] })
      expect(given).toEqual({ d: new Date(0), list: [new Date(86_400_000)] })
      expect(outcome).toEqual(given)
      expect((outcome as { d: unknown }).d).toBeInstanceOf(Date)
    })

    it('C113 a bigint is carried, and what cannot be is refused at the call with its path', async () => {
      const { given, outcome } = await through({ n: 10n ** 30n })
      expect([given, outcome]).toEqual([{ n: 10n ** 30n }, { n: 10n ** 30n }])
      const hf = await harness().connect()
      const refused = await rejection(hf.enqueue(task, { n: { deep: [Symbol('s')] } }))
      expect(refused).toMatchObject({ code: 'INVALID_PAYLOAD', details: { path: 'input.n.deep[0]' } })
    })

    it('C117 one limit in bytes of UTF-8, at the door and to the byte; lists carry no payload', async () => {
      const limit = 1_048_576
      const hf = await harness().connect()
      // Quotes around a text take two bytes, and a euro sign takes three.
      const text = (bytes: number): string => '€'.repeat(Math.floor((bytes - 2) / 3)) + 'x'.repeat((bytes - 2) % 3)
      const fits = await hf.enqueue(task, text(limit))
      expect((await hf.get(fits.id))?.input).toBe(text(limit))
      expect(await rejection(hf.enqueue(task, text(limit + 1)))).toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
        details: { limit, bytes: limit + 1 },
      })
      expect(await codeOf(hf.enqueue(task, 'x'.repeat(16 * limit)))).toBe('PAYLOAD_TOO_LARGE')
      const { jobs } = await hf.list()
      expect(jobs.map(({ id }) => id)).toEqual([fits.id])
      expect(JSON.stringify(jobs).length).toBeLessThan(5_000)
    })

    it('C118 every script comes back as it was: payload, result, progress, log, metadata and error', async () => {
      const all = SCRIPTS.join(' | ')
      const { hf, id, given, outcome } = await through(SCRIPTS, async (value, ctx) => {
        await ctx.progress(all)
        ctx.log.info({ [all]: all }, all)
        return value
      })
      expect([given, outcome]).toEqual([SCRIPTS, SCRIPTS])
      expect(await hf.get(id)).toMatchObject({ progress: all, metadata: { text: SCRIPTS.join(' ') } })
      expect(await hf.logs(id)).toMatchObject([{ msg: all, fields: { [all]: all } }])
      const failed = await through('x', () => {
        throw Object.assign(new Error(all), { name: SCRIPTS[0] })
      })
      expect(failed.outcome).toMatchObject({ details: { failure: { message: all, name: SCRIPTS[0] } } })
    })

    it('C118 a million euro signs in an error are cut to 2 kB of UTF-8, between characters', async () => {
      const { hf, id } = await through('x', () => {
        const error = new Error('€'.repeat(1_000_000), { cause: new Error('€'.repeat(1_000_000)) })
        error.stack = '€'.repeat(1_000_000)
        throw error
      })
      const failure = (await hf.get(id))?.lastFailure
      for (const [text, bytes] of [
        [failure?.message, 2_000],
        [failure?.stack, 8_000],
        [failure?.cause?.message, 2_000],
      ] as const) {
        expect(text).toMatch(/^€+…$/)
        expect(Buffer.byteLength(text ?? '')).toBeLessThanOrEqual(bytes)
        expect(Buffer.byteLength(text ?? '')).toBeGreaterThan(bytes - 6)
      }
    })

    it.each(['inline', 'thread', 'process'] as const)(
      'an output that cannot be kept is BAD_OUTPUT by its place: %s',
      async (where) => {
        const hf = await harness().connect()
        const contract = defineJob<string, unknown>('odd', { retry: retry.none() })
        const handler =
          where === 'inline' ? handle(contract, oddOutput) : inThread(contract, ODD_MODULE, { isolation: where })
        await harness().worker(hf, { handlers: [handler], concurrency: 1 })
        for (const [name, place] of [
          ['detached', 'output.bytes: a Uint8Array whose buffer was transferred'],
          ['map', 'output.list[1]: an instance of Map'],
          ['function', 'output.f: a function'],
          ['sparse', 'output'],
        ] as const) {
          const job = await hf.enqueue(contract, name)
          await within(rejection(job.result()), 'the job ends')
          const { lastFailure, attempts } = (await hf.get(job.id)) ?? {}
          expect([lastFailure?.code, attempts]).toEqual(['BAD_OUTPUT', 1])
          expect(lastFailure?.message).toContain(place)
        }
        expect(await (await hf.enqueue(contract, 'fine')).result()).toBe('fine')
      },
    )

    it('C120 whatever is thrown is a failure with a reason, and none of its code runs', async () => {
      let calls = 0
      const run = (): never => {
        calls += 1
        throw new Error('never')
      }
      const hostile = {
        get code() {
          return run()
        },
        get message() {
          return run()
        },
        get stack() {
          return run()
        },
        toJSON: run,
        toString: run,
        a: 1,
      }
      const values: readonly [unknown, object][] = [
        ['x', { message: 'x' }],
        [42, { message: '42' }],
        [null, { message: 'null' }],
        [undefined, { message: 'undefined' }],
        [{ code: 7 }, { message: '{"code":7}' }],
        [Symbol('s'), { message: 'Symbol(s)' }],
        [Object.freeze(new Error('frozen')), { message: 'frozen', name: 'Error' }],
        [new DOMException('gone', 'AbortError'), { message: 'gone', name: 'AbortError' }],
        [hostile, { code: 'HANDLER_ERROR', message: expect.stringContaining('"a":1') }],
      ]
      const hf = await harness().connect()
      const handler = handle(task, (index) => {
        throw values[Number(index)]?.[0]
      })
      const worker = await harness().worker(hf, { handlers: [handler] })
      const jobs = await hf.enqueueMany(values.map((_, index) => ({ job: task, input: index })))
      for (const [index, job] of jobs.entries()) {
        const error = await within(rejection(job.result()), 'the job ends')
        expect(error).toMatchObject({ code: 'JOB_DEAD', details: { failure: values[index]?.[1] } })
      }
      await worker.stop()
      expect(calls).toBe(0)
    })
  })
}
