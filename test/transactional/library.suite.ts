/**
 * What holds for `enqueueTx` whatever library the transaction is of: the order and its job are there together or not at all,
 * and the job is what `enqueue` would have made of it. The libraries have one connection, and the store uses none of theirs.
 */
import {
  defineJob,
  type EnqueueOptions,
  type Holdfast,
  handle,
  isHoldfastError,
  type JobHandle,
  type JobRecord,
} from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { eventually, gate, rejection } from '../support/event.ts'
import type { Library, Session, Work } from './library.ts'

/** A database that holds both the table `orders` and the store. */
export interface Place {
  /** A client of the store, apart from others in the same process. */
  connect(): Promise<Holdfast>
  /** For the libraries. */
  readonly location: string
  orders(): Promise<readonly number[]>
  /** What the error is when the database refuses a job of the type `refused`. */
  readonly refusal: object
  remove(): Promise<void>
}

const mail = defineJob('mail', { input: z.object({ to: z.string() }), output: z.object({ sent: z.string() }) })
const HOUR_MS = 3_600_000

export function libraryTests(library: Library, openPlace: () => Promise<Place>): void {
  let place: Place
  let hf: Holdfast
  let session: Session

  beforeEach(async () => {
    place = await openPlace()
    hf = await place.connect()
    session = await library.open(place.location)
  })

  afterEach(async () => {
    await session.close()
    await hf.close()
    await place.remove()
  })

  type Enqueue = (...[transaction]: Parameters<Work['enqueue']>) => Promise<JobHandle>

  async function transaction(enqueue: Enqueue, more: Partial<Work> = {}): Promise<JobHandle> {
    let enqueued: Promise<JobHandle> | undefined
    const work = {
      order: 1,
      enqueue: (tx) => {
        enqueued = enqueue(tx)
        return enqueued
      },
      ...more,
    } satisfies Work
    await session.transaction(work)
    if (enqueued === undefined) throw new Error('nothing was enqueued')
    return enqueued
  }

  it('73 C061 a commit keeps both, and the job runs', async () => {
    const job = await transaction((tx) => hf.enqueueTx(tx, mail, { to: 'ada' }))
    expect(await place.orders()).toEqual([1])
    const worker = await hf.worker({ handlers: [handle(mail, ({ to }) => ({ sent: to }))] })
    expect(await job.result({ timeout: '10s' })).toEqual({ sent: 'ada' })
    await worker.stop()
  })

  it('74 a rollback leaves neither, and 76 its idempotency key is free', async () => {
    const options = { idempotencyKey: 'order-1' }
    const lost = await transaction((tx) => hf.enqueueTx(tx, mail, { to: 'ada' }, options), { fails: true })
    expect(await place.orders()).toEqual([])
    expect(await hf.get(lost.id)).toBeNull()
    expect((await hf.stats()).total).toBe(0)
    const again = await transaction((tx) => hf.enqueueTx(tx, mail, { to: 'ada' }, options))
    expect(again.deduplicated).toBe(false)
    expect(await hf.get(again.id)).toMatchObject({ state: 'queued', idempotencyKey: 'order-1' })
  })

  it('a key that is known gives the job that has it, in another transaction and in the same', async () => {
    const options = { idempotencyKey: 'same' }
    const first = await hf.enqueue(mail, { to: 'ada' }, options)
    const second = await transaction((tx) => hf.enqueueTx(tx, mail, { to: 'bob' }, options))
    expect({ ...second }).toMatchObject({ id: first.id, deduplicated: true })
    const inside: Promise<JobHandle>[] = []
    const twice: Enqueue = async (tx) => {
      for (const _ of [1, 2]) inside.push(hf.enqueueTx(tx, mail, { to: 'eve' }, { idempotencyKey: 'new' }))
      await Promise.all(inside)
      return first
    }
    await transaction(twice, { order: 2 })
    const [one, two] = await Promise.all(inside)
    expect([one?.deduplicated, two?.deduplicated]).toEqual([false, true])
    expect(two?.id).toBe(one?.id)
  })

  it('the job is what enqueue makes of the same words', async () => {
    const deadline = Date.now() + 2 * HOUR_MS
    const inputs: readonly (readonly [unknown, EnqueueOptions])[] = [
      [{ to: "'; DROP TABLE orders; -- $1 ? ?? \\? :x ü 😀", at: 'a\u0000b' }, {}],
      [{ at: new Date(0), big: 2n ** 70n, bytes: new Uint8Array([0, 255, 128]), none: undefined }, { priority: -7 }],
      [undefined, { runAt: deadline - HOUR_MS, deadline, timeout: '5m', maxAttempts: 3, maxCrashes: 2 }],
      [[null, true, 0.5], { queue: 'other', metadata: { a: [1, '$2', null] }, traceId: 't-1', keepResult: '1d' }],
      ['x'.repeat(100_000), { retry: { kind: 'fixed', attempts: 4, baseMs: 10, capMs: 10, jitter: 0 }, priority: 9 }],
    ]
    for (const [index, [input, options]] of inputs.entries()) {
      const ours = await transaction((tx) => hf.enqueueTx(tx, 'task', input, options), { order: index })
      const theirs = await hf.enqueue('task', input, options)
      const [a, b] = [await hf.get(ours.id), await hf.get(theirs.id)]
      expect(withoutIdentity(a)).toEqual(withoutIdentity(b))
      expect(a?.input).toEqual(input)
    }
  })

  it('C058 a delay counts from the call', async () => {
    const before = Date.now()
    const job = await transaction((tx) => hf.enqueueTx(tx, 'task', 1, { delay: '1h' }))
    const found = await hf.get(job.id)
    expect(found).toMatchObject({ state: 'scheduled' })
    expect(found?.runAt).toBeGreaterThanOrEqual(before + HOUR_MS)
    expect(found?.runAt).toBeLessThanOrEqual(Date.now() + HOUR_MS)
  })

  if (library.canWait) {
    it('75 what is not committed is neither seen nor run, and the commit wakes a worker', async () => {
      const ran: unknown[] = []
      const worker = await hf.worker({ handlers: [handle(mail, ({ to }) => ({ sent: String(ran.push(to)) }))] })
      const other = await place.connect()
      let id = ''
      await session.transaction({
        order: 1,
        enqueue: async (tx) => {
          id = (await hf.enqueueTx(tx, mail, { to: 'ada' })).id
        },
        inside: async () => {
          expect(await hf.get(id)).toBeNull()
          expect((await other.stats()).total).toBe(0)
          expect(await place.orders()).toEqual([])
          expect(ran).toEqual([])
        },
      })
      await eventually(() => ran.length > 0, 'the job runs')
      expect(ran).toEqual(['ada'])
      await worker.stop()
      await other.close()
    })

    it('result() waits for the commit, and not for ever', async () => {
      const waiting = gate<Promise<unknown>>()
      const worker = await hf.worker({ handlers: [handle(mail, () => ({ sent: 'yes' }))] })
      await transaction((tx) => hf.enqueueTx(tx, mail, { to: 'ada' }).then(awaited))
      expect(await await waiting.passed).toEqual({ sent: 'yes' })
      function awaited(job: JobHandle): JobHandle {
        waiting.open(job.result({ timeout: '10s' }))
        return job
      }
      const lost = await transaction((tx) => hf.enqueueTx(tx, mail, { to: 'ada' }), { order: 2, fails: true })
      expect(await rejection(() => lost.result({ timeout: 50 }))).toMatchObject({
        code: 'RESULT_TIMEOUT',
        details: { state: null },
      })
      await worker.stop()
    })

    it('what enqueue refuses is refused before anything is written, and the transaction goes on', async () => {
      const codes: unknown[] = []
      const wrong: Enqueue = async (tx) => {
        for (const attempt of [
          () => hf.enqueueTx(tx, mail, { to: 1 } as never),
          () => hf.enqueueTx(tx, 'task', () => {}),
          () => hf.enqueueTx(tx, 'task', 1, { delay: 'soon' as never }),
          () => hf.enqueueTx(tx, 'task', 1, { priorty: 1 } as never),
          () => hf.enqueueTx(tx, '', 1),
        ])
          codes.push((await rejection(attempt)).code)
        return hf.enqueueTx(tx, 'task', 'right')
      }
      const job = await transaction(wrong)
      expect(codes).toEqual([
        'VALIDATION_FAILED',
        'INVALID_PAYLOAD',
        'INVALID_DURATION',
        'INVALID_ARGUMENT',
        'INVALID_NAME',
      ])
      expect(await hf.get(job.id)).toMatchObject({ state: 'queued', input: 'right' })
      expect((await hf.stats()).total).toBe(1)
    })
  }

  it('what the database refuses is an error of ours whatever the library makes of it, and leaves neither', async () => {
    const error = await rejection(() => transaction((tx) => hf.enqueueTx(tx, 'refused', 1)))
    expect(isHoldfastError(error)).toBe(true)
    expect(error).toMatchObject(place.refusal)
    expect(await place.orders()).toEqual([])
    expect((await hf.stats()).total).toBe(0)
  })

  it('a transaction that has ended is refused', async () => {
    const kept: Parameters<Work['enqueue']>[0][] = []
    await transaction((tx) => {
      kept.push(tx)
      return hf.enqueueTx(tx, 'task', 1)
    })
    const [tx] = kept
    if (tx === undefined || library.name === 'a handle made by hand') return
    const error = await rejection(() => hf.enqueueTx(tx, 'task', 2))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
    await eventually(async () => (await hf.stats()).total === 1, 'only the first job is there')
  })
}

function withoutIdentity(job: JobRecord | null): object {
  const { id, createdAt, updatedAt, runAt, ...rest } = job ?? ({} as JobRecord)
  return { ...rest, lane: id.split('/')[0], isLater: runAt > updatedAt, isUpdated: createdAt !== updatedAt }
}

export function describeLibraries(name: string, libraries: readonly Library[], open: () => Promise<Place>): void {
  describe(name, () => {
    for (const library of libraries) describe(library.name, () => libraryTests(library, open))
  })
}
