/**
 * No handler begins once its attempt is over, whatever comes between the grant and the call: a schema that takes its time, one that takes
 * the loop, a module that loads. Such an attempt ends at once, with the outcome that its reason asks for. F6, F7, C2, L13, W6.
 */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defineJob, type EnqueueOptions, type Holdfast, handle, inThread, retry, type Worker } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SuiteContext } from '../conformance/harness.ts'
import { eventually, gate, nextEvent, within } from '../support/event.ts'

/** The signal's grace must play no part. */
const OPTIONS = { killGrace: '1h', lease: '10m', concurrency: 1, prefetch: 0 } as const
/** Enough to be claimed in on a busy machine. */
const DEADLINE_MS = 800

const checkedBy = (validate: (value: unknown) => { value: unknown } | Promise<{ value: unknown }>) =>
  defineJob('checked', { retry: retry.none(), input: { '~standard': { version: 1, vendor: 'test', validate } } })

/** A module whose `setup()` waits for a file, and whose handler writes down that it was called. */
const moduleText = (folder: string): string => `
  import { appendFileSync, existsSync } from 'node:fs'
  import { setImmediate } from 'node:timers/promises'
  const at = (name) => ${JSON.stringify(folder)} + '/' + name
  export async function setup() {
    appendFileSync(at('setups'), '.')
    while (!existsSync(at('open'))) await setImmediate()
  }
  export default (name) => {
    if (name === 'exit') process.exit(1)
    appendFileSync(at('called'), name + ' ')
    return name
  }`

export function startsSuite({ harness }: SuiteContext): void {
  describe('no handler begins after its end', () => {
    let hf: Holdfast
    beforeEach(async () => {
      hf = await harness().connect()
    })

    type Ending = (id: string, worker: Worker) => Promise<unknown>
    const byItself: Ending = async () => undefined
    const endings: readonly [name: string, options: () => EnqueueOptions, end: Ending, record: object][] = [
      [
        'its deadline',
        () => ({ deadline: harness().now() + DEADLINE_MS }),
        byItself,
        { state: 'dlq', dlqCode: 'DEADLINE_EXCEEDED', attempts: 1 },
      ],
      ['its timeout', () => ({ timeout: 50 }), byItself, { state: 'dlq', lastFailure: { code: 'TIMEOUT' } }],
      [
        'a cancellation',
        () => ({}),
        async (id, worker) => {
          const cancelled = nextEvent(worker, 'cancelled')
          expect(await hf.cancel(id)).toBe('requested')
          await cancelled
        },
        { state: 'cancelled', lastFailure: { code: 'CANCELLED' } },
      ],
      [
        'a cancellation by force, which takes its lease',
        () => ({}),
        async (id, worker) => {
          const lost = nextEvent(worker, 'lost')
          expect(await hf.cancel(id, { force: true })).toBe('cancelled')
          await lost
        },
        { state: 'cancelled' },
      ],
      [
        'the end of its worker',
        () => ({}),
        (_id, worker) => within(worker.stop({ deadline: 0 }), 'stop'),
        { state: 'queued', attempts: 0 },
      ],
    ]

    it.each(endings)(
      'inline: %s, while the schema of its input has not answered',
      async (name, options, end, record) => {
        const [asked, answer] = [gate(), gate()]
        const calls: unknown[] = []
        const slow = checkedBy(async (value) => {
          asked.open()
          await answer.passed
          return { value }
        })
        const handler = handle(slow, (input) => {
          calls.push(input)
          return input
        })
        const worker = await harness().worker(hf, { handlers: [handler], ...OPTIONS })
        const { id } = await hf.enqueue('checked', 'unwanted', { retry: retry.none(), ...options() })
        await within(asked.passed, 'the schema is asked')
        await end(id, worker)
        await eventually(async () => (await hf.get(id))?.state !== 'running', 'it has ended')
        expect(await hf.get(id)).toMatchObject(record)
        expect(worker.activeJobs).toBe(0)
        answer.open()
        const isStopped = name === 'the end of its worker'
        if (isStopped) await harness().worker(hf, { handlers: [handler], ...OPTIONS })
        expect(await (await hf.enqueue('checked', 'next')).result()).toBe('next')
        expect(calls).toEqual(isStopped ? ['unwanted', 'next'] : ['next'])
      },
    )

    it.each([
      ['deadline', 'DEADLINE_EXCEEDED'],
      ['timeout', 'TIMEOUT'],
    ] as const)('inline: its %s, when the schema has held up the loop that would have told', async (limit, code) => {
      let calls = 0
      const spinning = checkedBy((value) => {
        const until = performance.now() + DEADLINE_MS + 50
        while (performance.now() < until);
        return { value }
      })
      const handler = handle(spinning, () => {
        calls += 1
      })
      const worker = await harness().worker(hf, { handlers: [handler], ...OPTIONS })
      const ended = nextEvent(worker, 'dead')
      const options = limit === 'timeout' ? { timeout: 20 } : { deadline: harness().now() + DEADLINE_MS }
      await hf.enqueue('checked', 1, { retry: retry.none(), ...options })
      expect(await ended).toMatchObject({ failure: { code } })
      expect(calls).toBe(0)
    })

    describe.each(['thread', 'process'] as const)('in a %s', (isolation) => {
      let folder: string
      const at = (name: string): string => join(folder, name)
      const textOf = (name: string): string => (existsSync(at(name)) ? readFileSync(at(name), 'utf8') : '')
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'holdfast-starts-'))
      })
      afterEach(() => rmSync(folder, { recursive: true, force: true }))

      const whileItLoads = endings.filter(([name]) => !/timeout|worker/.test(name))

      it.each(whileItLoads)(
        'that loads its module: %s, at once, and what comes next has the module',
        async (_name, options, end, record) => {
          writeFileSync(at('module.mjs'), moduleText(folder))
          appendFileSync(at('open'), '')
          const contract = defineJob<string>('loads', { retry: retry.none() })
          const handlers = [inThread(contract, pathToFileURL(at('module.mjs')), { isolation })]
          const worker = await harness().worker(hf, { handlers, ...OPTIONS })
          await expect((await hf.enqueue(contract, 'exit')).result()).rejects.toMatchObject({ code: 'JOB_DEAD' })
          rmSync(at('open'))
          const loaded = textOf('setups').length

          const first = await hf.enqueue(contract, 'first', options())
          await eventually(() => textOf('setups').length > loaded, 'the module loads again')
          await end(first.id, worker)
          await eventually(async () => (await hf.get(first.id))?.state !== 'running', 'it has ended')
          expect(await hf.get(first.id)).toMatchObject(record)
          // The thread or process is at its module still, so this one waits for it.
          const cancelled = nextEvent(worker, 'cancelled')
          const unwanted = await hf.enqueue(contract, 'unwanted')
          await eventually(async () => (await hf.get(unwanted.id))?.state === 'running', 'it is claimed')
          await hf.cancel(unwanted.id)
          expect(await cancelled).toMatchObject({ jobId: unwanted.id })

          appendFileSync(at('open'), '')
          expect(await (await hf.enqueue(contract, 'next')).result()).toBe('next')
          expect([textOf('called'), textOf('setups').length]).toEqual(['next ', loaded + 1])
        },
      )
    })
  })
}
