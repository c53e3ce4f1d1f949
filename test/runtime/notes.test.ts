/** Progress and log lines between a handler and its store, in virtual time: when they are written, what is held, what a fault costs. */
import { describe, expect, it } from 'vitest'
import { AttemptNotes } from '#dist/src/actors/attempt-notes.js'
import type { Note, Request } from '#dist/src/backends/protocol/index.js'
import { defineJob, handle, type JobContext } from '#dist/src/contract.js'
import { HoldfastError } from '#dist/src/errors.js'
import { settledAt, type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<string, unknown>('task')

interface Written {
  readonly at: number
  readonly via: 'note' | 'turn'
  readonly note: Note
}

/** A store whose notes are seen, and fail while the test says so. */
function watched(fails: () => HoldfastError | null = () => null) {
  const written: Written[] = []
  const virtual: VirtualClient = virtualClient((store) => ({
    call: async (type, request) => {
      if (type === 'job.note') {
        const { notes } = request as Request<'job.note'>
        written.push(...notes.map((note) => ({ at: virtual.world.time, via: 'note' as const, note })))
        const error = fails()
        if (error !== null) throw error
      }
      if (type === 'job.turn') {
        const { settlements } = request as Request<'job.turn'>
        for (const { note } of settlements)
          if (note !== undefined) written.push({ at: virtual.world.time, via: 'turn', note })
      }
      return store.call(type, request)
    },
  }))
  const wait = (ms: number): Promise<void> => new Promise((resolve) => void virtual.process.set(resolve, ms))
  return { ...virtual, written, wait }
}

/** Runs one job; `run` is its handler. */
async function ran(virtual: ReturnType<typeof watched>, run: (ctx: JobContext) => unknown) {
  const { world, client } = virtual
  await client.worker({
    handlers: [handle(task, (_, ctx) => run(ctx))],
    retry: { kind: 'fixed', attempts: 1, baseMs: 0, capMs: 0, jitter: 0 },
  })
  const job = await client.enqueue(task, 'x')
  const settled = job.result().catch((error: unknown) => error)
  await settledAt(world, settled)
  return { id: job.id, outcome: await settled }
}

const unavailable = (): HoldfastError =>
  new HoldfastError('STORE_UNAVAILABLE', 'away', { details: { outcome: 'notDone' } })

describe('notes', () => {
  it('are written at most once in 250 ms an attempt, the latest value with the newest lines', async () => {
    const virtual = watched()
    const { id } = await ran(virtual, async (ctx) => {
      for (let step = 0; step < 100; step += 1) {
        void ctx.progress(step)
        ctx.log.info(`step ${step}`)
        await virtual.wait(10)
      }
    })
    const times = virtual.written.filter(({ via }) => via === 'note').map(({ at }) => at)
    expect(times.length).toBeGreaterThanOrEqual(4)
    times.slice(1).forEach((at, index) => {
      expect(at - (times[index] ?? 0)).toBeGreaterThanOrEqual(125)
    })
    expect(times.length).toBeLessThanOrEqual(9)
    expect(virtual.written.at(-1)).toMatchObject({ via: 'turn', note: { progress: '99' } })
    expect((await virtual.client.logs(id, { limit: 500 })).map(({ msg }) => msg)).toEqual(
      Array.from({ length: 100 }, (_, step) => `step ${step}`),
    )
  })

  it('that nobody waits for cost a short attempt no call of their own', async () => {
    const virtual = watched()
    const { id } = await ran(virtual, async (ctx) => {
      ctx.log.info('begins')
      await virtual.wait(100)
      ctx.log.info('ends')
    })
    expect(virtual.written.map(({ via }) => via)).toEqual(['turn'])
    expect(await virtual.client.logs(id)).toHaveLength(2)
  })

  it('hold no more lines than the job may keep, however fast they come', async () => {
    const virtual = watched()
    const { id } = await ran(virtual, (ctx) => {
      for (let line = 0; line < 50_000; line += 1) ctx.log.info(`line ${line}`)
    })
    expect(virtual.written.map(({ note }) => note.lines.length)).toEqual([100])
    expect((await virtual.client.logs(id)).at(-1)?.msg).toBe('line 49999')
  })

  it('are never more than twice as many as that in memory', () => {
    const owner = { keepLines: 10, changed: () => {}, ended: () => {}, mayWrite: () => false }
    const notes = new AttemptNotes({ id: 'default/1', token: '1:w:n.0' }, owner, () => {})
    for (let line = 0; line < 1_000; line += 1) {
      notes.log(String(line))
      expect((Reflect.get(notes, 'lines') as unknown[]).length).toBeLessThanOrEqual(20)
    }
    expect(notes.take()?.lines.map(({ number }) => number)).toEqual(
      Array.from({ length: 10 }, (_, index) => 991 + index),
    )
  })

  it('that failed are written again with what came since, each line once', async () => {
    let failures = 0
    const virtual = watched(() => (failures++ < 40 ? unavailable() : null))
    const { id } = await ran(virtual, async (ctx) => {
      for (let step = 0; step < 60; step += 1) {
        ctx.log.info(`step ${step}`)
        await virtual.wait(1_000)
      }
    })
    expect(failures).toBeGreaterThan(0)
    expect(virtual.warnings.map(({ msg }) => msg)).toContain('progress and log lines of jobs could not be stored')
    expect((await virtual.client.logs(id)).map(({ msg }) => msg)).toEqual(
      Array.from({ length: 60 }, (_, step) => `step ${step}`),
    )
  })

  it('on their way when the attempt ends go with its end too, and are stored once', async () => {
    const virtual = watched(() => unavailable())
    const { id } = await ran(virtual, async (ctx) => {
      ctx.log.info('first')
      void ctx.progress('on its way')
      await virtual.wait(5)
      ctx.log.info('last')
    })
    expect(virtual.written[0]).toMatchObject({ via: 'note', note: { progress: '"on its way"' } })
    expect(virtual.written.at(-1)).toMatchObject({ via: 'turn', note: { progress: '"on its way"' } })
    expect((await virtual.client.logs(id)).map(({ msg }) => msg)).toEqual(['first', 'last'])
    expect((await virtual.client.get(id))?.progress).toBe('on its way')
  })

  it('tell who waits that they could not be stored, and a refused one ends only itself', async () => {
    const virtual = watched(() => new HoldfastError('STORE_FULL', 'full', { details: { outcome: 'refused' } }))
    const told: unknown[] = []
    const { outcome } = await ran(virtual, async (ctx) => {
      told.push(await ctx.progress(1).catch((error: unknown) => error))
      return 'done'
    })
    expect(told).toMatchObject([{ code: 'STORE_FULL' }])
    expect(outcome).toBe('done')
  })

  it('go with a failure as with a success, and with nothing that is not kept', async () => {
    const virtual = watched()
    const { id } = await ran(virtual, (ctx) => {
      ctx.log.error('about to fail')
      throw new Error('failed')
    })
    expect((await virtual.client.logs(id)).map(({ msg }) => msg)).toEqual(['about to fail'])
  })
})
