/** In a synchronous transaction the job is written, or the error thrown, before `enqueueTx` returns: nothing can be awaited there. */
import Database from 'better-sqlite3'
import { connect, defineJob, type Holdfast, handle, type JobHandle } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { freshPath } from '../sqlite/support.ts'
import { codeOf, rejection } from '../support/event.ts'
import { silent } from '../support/silent.ts'

const mail = defineJob('mail', { input: z.object({ to: z.string() }) })
const slow = defineJob('slow', { input: z.string().refine(async () => true) })

describe('enqueueTx on a Database of better-sqlite3', () => {
  let db: Database.Database
  let hf: Holdfast
  let path: string

  beforeEach(async () => {
    path = freshPath()
    hf = await connect(`sqlite:${path}`, { logger: silent })
    db = new Database(path)
    db.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)')
  })

  afterEach(async () => {
    db.close()
    await hf.close()
  })

  const count = (table: string): unknown => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()
  const order = (): unknown => db.prepare('INSERT INTO orders (id) VALUES (1)').run()

  it('writes before it returns, with its id at hand', async () => {
    let job: Promise<JobHandle> | undefined
    db.transaction(() => {
      order()
      job = hf.enqueueTx(db, mail, { to: 'ada' })
      expect(count('holdfast_job')).toBe(1)
    })()
    const id = (await job)?.id ?? ''
    expect(await hf.get(id)).toMatchObject({ input: { to: 'ada' } })
  })

  it.each<[string, (hf: Holdfast, db: Database.Database) => unknown, string]>([
    ['a wrong input', (hf, db) => hf.enqueueTx(db, mail, { to: 1 } as never), 'VALIDATION_FAILED'],
    ['a wrong option', (hf, db) => hf.enqueueTx(db, mail, { to: '' }, { delay: 'x' as never }), 'INVALID_DURATION'],
    ['a schema that must be awaited', (hf, db) => hf.enqueueTx(db, slow, 'x'), 'INVALID_ARGUMENT'],
  ])('throws for %s, so that the order is rolled back', (_, enqueue, code) => {
    const run = db.transaction(() => {
      order()
      void enqueue(hf, db)
    })
    expect(run).toThrow(expect.objectContaining({ code }))
    expect([count('orders'), count('holdfast_job')]).toEqual([0, 0])
  })

  it('throws when the store has no transactions, or is another one', async () => {
    const memory = await connect('memory:', { logger: silent })
    const elsewhere = await connect(`sqlite:${freshPath()}`, { logger: silent })
    for (const [store, expected] of [
      [memory, { code: 'UNSUPPORTED', details: { capability: 'transactionalEnqueue' } }],
      [elsewhere, { code: 'INVALID_ARGUMENT', details: { field: 'transaction' } }],
    ] as const) {
      const run = db.transaction(() => {
        order()
        void store.enqueueTx(db, mail, { to: 'ada' })
      })
      expect(await rejection(run)).toMatchObject(expected)
      expect(count('orders')).toBe(0)
      await store.close()
    }
  })

  it('rejects, and does not throw, where no transaction is open', async () => {
    const enqueued = hf.enqueueTx(db, mail, { to: 'ada' })
    expect(await rejection(enqueued)).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
    expect(count('holdfast_job')).toBe(0)
  })

  it('gives a handle that knows of a job which ended and was not kept', async () => {
    const keeping = await connect(`sqlite:${path}`, { logger: silent, keepCompleted: 0 })
    const worker = await keeping.worker({ handlers: [handle(mail, () => 'sent')] })
    db.exec('BEGIN IMMEDIATE')
    const result = keeping.enqueueTx(db, mail, { to: 'ada' }).then((job) => job.result({ timeout: '10s' }))
    result.catch(() => {})
    db.exec('COMMIT')
    expect(await codeOf(result)).toBe('RESULT_NOT_KEPT')
    await worker.stop()
    await keeping.close()
  })

  it('asks a DatabaseSync that cannot say whether a transaction is open by a BEGIN', async () => {
    // The shape of node:sqlite before Node 22.16, on the same SQLite.
    const early = {
      prepare: (text: string) => ({ all: (...values: unknown[]) => db.prepare<unknown[]>(text).all(values) }),
      exec: (text: string) => void db.exec(text),
      createSession: () => ({}),
      applyChangeset: () => true,
    }
    expect(await codeOf(hf.enqueueTx(early, mail, { to: 'ada' }))).toBe('INVALID_ARGUMENT')
    expect(db.inTransaction).toBe(false)
    db.exec('BEGIN')
    await hf.enqueueTx(early, mail, { to: 'ada' })
    expect(db.inTransaction).toBe(true)
    db.exec('COMMIT')
    expect(count('holdfast_job')).toBe(1)
  })

  it('goes with the inner transaction that it was called in', async () => {
    const jobs: Promise<JobHandle>[] = []
    db.transaction(() => {
      order()
      jobs.push(hf.enqueueTx(db, mail, { to: 'outer' }))
      const inner = db.transaction(() => {
        jobs.push(hf.enqueueTx(db, mail, { to: 'inner' }))
        throw new Error('the inner one fails')
      })
      expect(inner).toThrow('the inner one fails')
    })()
    const [outer, inner] = await Promise.all(jobs)
    expect(await hf.get(outer?.id ?? '')).not.toBeNull()
    expect(await hf.get(inner?.id ?? '')).toBeNull()
  })

  it('is STORE_BUSY where a transaction that has read may not write any more', async () => {
    db.exec('BEGIN')
    count('orders')
    await hf.enqueue(mail, { to: 'in between' })
    expect(await codeOf(() => hf.enqueueTx(db, mail, { to: 'ada' }))).toBe('STORE_BUSY')
    db.exec('ROLLBACK')
  })

  it('is STORE_READONLY on a connection, or to a store, that only reads', async () => {
    const reader = new Database(path, { readonly: true })
    reader.exec('BEGIN')
    expect(await codeOf(() => hf.enqueueTx(reader, mail, { to: 'ada' }))).toBe('STORE_READONLY')
    reader.close()
    const readonly = await connect(`sqlite:${path}?mode=ro`, { logger: silent })
    db.exec('BEGIN')
    expect(await codeOf(() => readonly.enqueueTx(db, mail, { to: 'ada' }))).toBe('STORE_READONLY')
    db.exec('ROLLBACK')
    await readonly.close()
  })

  it('is refused on a database in memory', async () => {
    const memory = new Database(':memory:')
    memory.exec('BEGIN')
    const error = await rejection(() => hf.enqueueTx(memory, mail, { to: 'ada' }))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction', path } })
    memory.close()
  })

  it('knows its file by another name, and a namespace that nobody has used', async () => {
    const { symlinkSync } = await import('node:fs')
    symlinkSync(path, `${path}-link`)
    const other = await connect(`sqlite:${path}`, { logger: silent, namespace: 'other' })
    db.exec("DELETE FROM holdfast_namespace WHERE name = 'other'")
    const linked = new Database(`${path}-link`)
    linked.exec('BEGIN')
    await other.enqueueTx(linked, mail, { to: 'ada' })
    linked.exec('COMMIT')
    linked.close()
    expect(count('holdfast_job')).toBe(1)
    expect(db.prepare("SELECT count(*) FROM holdfast_namespace WHERE name = 'other'").pluck().get()).toBe(1)
    await other.close()
  })
})
