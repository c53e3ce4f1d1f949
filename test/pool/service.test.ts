/**
 * What a handler's `ctx` does in a thread, as the main thread's services see it, and that nothing else gets through.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HoldfastError } from '#dist/src/errors.js'
import { failure, output, recorder, TestPool, task } from '../support/thread-pool.ts'

describe.each(['thread', 'process'] as const)('in a %s', (isolation) => {
  let pool: TestPool

  beforeAll(async () => {
    pool = new TestPool({ threads: 1 }, { isolation })
    await pool.actor.start()
  })

  afterAll(() => pool.actor.stop())

  describe('the start of a handler', () => {
    it('is told when asked for, before anything that the handler does', async () => {
      const events: string[] = []
      const { services } = recorder({
        async progress() {
          events.push('progress')
        },
      })
      const { isolation } = pool
      const started = task({ act: 'progress', value: 1 }, { isolation, onStart: () => events.push('start') })
      expect(output(await pool.actor.run(started, services).outcome)).toBe('kept')
      expect(events).toEqual(['start', 'progress'])
    })
  })

  describe('progress', () => {
    it('reaches the service and resolves when the service does', async () => {
      const { services, seen } = recorder()
      expect(output(await pool.act('progress', { value: { done: 3, of: 9 } }, services))).toBe('kept')
      expect(seen.progress).toEqual([{ done: 3, of: 9 }])
    })

    it('rejects in the thread with the error of the service', async () => {
      const details = { jobId: 'mail/01' }
      const lost = recorder({ progress: () => Promise.reject(new HoldfastError('LEASE_LOST', 'gone', { details })) })
      expect(output(await pool.act('progressRefused', { value: 1 }, lost.services))).toEqual({
        name: 'HoldfastError',
        code: 'LEASE_LOST',
        message: 'gone',
        details,
      })
      const odd = recorder({
        progress: () => {
          throw new HoldfastError('STORE_BUSY', 'busy', { details: { unsendable: () => 1 } })
        },
      })
      expect(output(await pool.act('progressRefused', { value: 1 }, odd.services))).toMatchObject({
        code: 'STORE_BUSY',
      })
      const plain = recorder({ progress: () => Promise.reject(new Error('a bug')) })
      expect(output(await pool.act('progressRefused', { value: 1 }, plain.services))).toMatchObject({
        code: 'INTERNAL',
      })
    })

    it('of a rejected promise that nobody awaits does not end the thread', async () => {
      const { services } = recorder({ progress: () => Promise.reject(new HoldfastError('LEASE_LOST', 'gone')) })
      const before = output(await pool.act('thread'))
      expect(output(await pool.act('dropsPromises', {}, services))).toBeUndefined()
      expect(output(await pool.act('thread'))).toBe(before)
    })
  })

  describe('enqueue', () => {
    it('C135 by type sends the options as they are', async () => {
      const { services, seen } = recorder()
      const call = { type: 'child', input: { a: 1 }, options: { priority: 5 } }
      expect(output(await pool.act('enqueue', call, services))).toEqual({ id: 'default/1', deduplicated: false })
      expect(seen.enqueued).toEqual([
        { type: 'child', input: { a: 1 }, options: { contract: null, options: { priority: 5 } } },
      ])
    })

    it('by contract checks the input in the thread and sends what the contract sets', async () => {
      const { services, seen } = recorder()
      const refused = output(await pool.act('enqueueContract', { input: { n: 'one' } }, services))
      expect(refused).toEqual({ code: 'VALIDATION_FAILED', message: 'child.typed: input.n: expected a number' })
      expect(seen.enqueued).toEqual([])
      expect(output(await pool.act('enqueueContract', { input: { n: 1 } }, services))).toMatchObject({
        id: 'default/1',
      })
      const contract = { queue: 'children', retry: null, timeoutMs: 500, maxCrashes: 2, keepResultMs: null }
      expect(seen.enqueued).toEqual([{ type: 'child.typed', input: { n: 1 }, options: { contract, options: null } }])
    })
  })

  describe('calls that a handler makes last and does not await', () => {
    it('reach their services before the outcome is known', async () => {
      const { services, seen } = recorder()
      expect(output(await pool.act('enqueuesLast', {}, services))).toBeUndefined()
      expect(seen.progress).toEqual(['last progress'])
      expect(seen.enqueued).toMatchObject([{ type: 'child.typed', input: { n: 2 } }])
    })
  })

  describe('log', () => {
    it('C134 of many attempts at once comes whole and in order, and adds no listener to anything', async () => {
      const warnings: string[] = []
      const onWarning = (warning: Error): void => void warnings.push(warning.name)
      process.on('warning', onWarning)
      const recorders = Array.from({ length: 100 }, () => recorder())
      await Promise.all(recorders.map(({ services }) => pool.act('logs', { lines: 100 }, services)))
      for (const { seen } of recorders) {
        expect(seen.logs.slice(0, 100).map(({ fields }) => fields)).toEqual(
          Array.from({ length: 100 }, (_, line) => ({ line })),
        )
      }
      process.off('warning', onWarning)
      expect(warnings).toEqual([])
    })

    it('keeps every line in order, also the last ones before the outcome and before a death', async () => {
      const { services, seen } = recorder()
      expect(output(await pool.act('logs', { lines: 300 }, services))).toBeUndefined()
      expect(seen.logs).toHaveLength(303)
      expect(seen.logs.slice(0, 300).map((log) => log.fields)).toEqual(
        Array.from({ length: 300 }, (_, line) => ({ line })),
      )
      const [text, error, odd] = seen.logs.slice(300)
      expect(text).toEqual({ level: 'warn', fields: {}, message: 'text only' })
      expect(error).toMatchObject({ level: 'error', fields: { err: { code: 'E_LOGGED' } }, message: 'logged' })
      expect(odd).toMatchObject({ level: 'debug', fields: { odd: { amount: 3 }, err: { message: 'inner' } } })

      const dying = recorder()
      expect(failure(await pool.act('logsThenExits', {}, dying.services))).toMatchObject({ code: 'PANIC' })
      expect(dying.seen.logs).toEqual([{ level: 'fatal', fields: {}, message: 'last words' }])
    })

    it('below the level that anybody wants does not leave', async () => {
      const { services, seen } = recorder()
      const quiet = task({ act: 'logsEveryLevel' }, { isolation: pool.isolation, logFrom: 3 })
      expect(output(await pool.actor.run(quiet, services).outcome)).toBeUndefined()
      expect(seen.logs.map(({ level }) => level)).toEqual(['warn', 'error', 'fatal'])
    })

    it('of whatever a handler gives costs it nothing, and runs none of its code', async () => {
      const { services, seen } = recorder()
      expect(output(await pool.act('logsHostile', {}, services))).toBe(0)
      expect(seen.logs).toMatchObject([
        { fields: { a: 1, trap: '[getter]', inside: { fn: '[function]' }, proxy: '[unreadable]' }, message: 'fields' },
        { fields: { value: '[unreadable]' }, message: '[symbol]' },
      ])
    })

    it('that throws on the main thread costs the line only', async () => {
      const { services } = recorder({
        log: () => {
          throw new Error('disk full')
        },
      })
      expect(output(await pool.act('logs', { lines: 1 }, services))).toBeUndefined()
    })
  })

  describe('a context whose attempt has ended', () => {
    it('refuses calls with LEASE_LOST and drops logs', async () => {
      const first = recorder()
      const second = recorder()
      await pool.act('keeps', {}, first.services)
      expect(output(await pool.act('usesKept', {}, second.services))).toEqual(['LEASE_LOST', 'LEASE_LOST', false])
      expect([first.seen, second.seen]).toEqual(Array(2).fill({ progress: [], enqueued: [], logs: [] }))
    })
  })

  describe('an abort', () => {
    it('of an attempt whose thread is still starting ends it, and its handler never begins', async () => {
      const killed = pool.run({ act: 'loops' })
      killed.kill()
      await killed.outcome
      const { services, seen } = recorder()
      const sent = pool.run({ act: 'progress', value: 'never' }, services)
      sent.abort({ code: 'JOB_CANCELLED', message: 'before the thread was there' })
      expect(failure(await sent.outcome)).toMatchObject({ kind: 'failed', code: 'JOB_CANCELLED' })
      expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
      expect(seen.progress).toEqual([])
    })
  })

  describe('what a handler posts by other ways', () => {
    it('is dropped, and the services of its own attempt work on', async () => {
      const { services, seen } = recorder()
      expect(output(await pool.act('forges', {}, services))).toBeUndefined()
      expect(seen).toEqual({ progress: ['after the forgeries'], enqueued: [], logs: [] })
    })
  })
})
