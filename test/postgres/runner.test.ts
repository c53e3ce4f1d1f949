/** Each step of a plan has a commit of its own: what fails after one that wrote is not told as if nothing had been done. */
import { expect, it } from 'vitest'
import type { Link } from '#dist/src/backends/postgres/link.js'
import { Runner } from '#dist/src/backends/postgres/runner.js'
import { Statements } from '#dist/src/backends/postgres/statement.js'
import { type Plan, read, write } from '#dist/src/backends/sql/plan.js'
import { HoldfastError } from '#dist/src/errors.js'
import { failureOf } from '../support/failure-of.ts'

/** Answers that a row was written, or found nothing; the statement `failing` fails with nothing done. */
function runnerOn(failing: string): Runner {
  const query: Link['query'] = async ({ name }) => {
    if (name === failing) throw new HoldfastError('STORE_BUSY', 'busy', { details: { outcome: 'notDone' } })
    return { rows: name === 'cancel_request' ? [[1, 0]] : [], count: 1 }
  }
  const link = { query, transaction: (run: (through: Link['query']) => unknown) => run(query) } as unknown as Link
  return new Runner(link, new Statements('holdfast'), 1)
}

function* writeThenRead(): Plan<void> {
  yield* write('cancel_request', [{ id: 'a/1' }])
  yield* read('job_find', [{ id: 'a/1' }])
}

function* readThenWrite(): Plan<void> {
  yield* read('job_find', [{ id: 'a/1' }])
  yield* write('cancel_request', [{ id: 'a/1' }])
}

it('what fails after a write may have been done', async () => {
  expect(await failureOf(runnerOn('job_find').run(writeThenRead))).toMatchObject({
    code: 'STORE_BUSY',
    outcome: 'unknown',
  })
})

it('what fails before any write, or in a transaction, was not', async () => {
  expect(await failureOf(runnerOn('cancel_request').run(readThenWrite))).toMatchObject({ outcome: 'notDone' })
  expect(await failureOf(runnerOn('job_find').run(writeThenRead, true))).toMatchObject({ outcome: 'notDone' })
})

it('a claim counts as a write', () => {
  const statements = new Statements('holdfast')
  const writing = (name: Parameters<Statements['get']>[0]): boolean | undefined => statements.get(name).isWriting
  expect([writing('job_claim'), writing('job_turn'), writing('lease_renew'), writing('job_get')]).toEqual([
    true,
    true,
    true,
    false,
  ])
})
