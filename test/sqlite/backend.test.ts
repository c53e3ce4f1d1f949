/** The backend on the main thread: hints, time, the end of the thread, closing, and what it says of itself. */
import { renameSync, rmSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { SqliteBackend, type SqliteBackendOptions } from '#dist/src/backends/sqlite/backend.js'
import { HoldfastError } from '#dist/src/errors.js'
import { claim, freshPath, job, ManualClock, openStore, quiet } from './support.ts'

const opened: SqliteBackend[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((backend) => backend.close()))
})

async function open(options: Partial<SqliteBackendOptions> = {}): Promise<SqliteBackend> {
  const backend = await SqliteBackend.open({ ...quiet, path: ':memory:', ...options })
  opened.push(backend)
  return backend
}

const failureOf = (work: Promise<unknown>): Promise<HoldfastError | null> =>
  work.then(
    () => null,
    (error: unknown) => {
      if (error instanceof HoldfastError) return error
      throw error
    },
  )

/** Resolves at the first hint that fits. */
function hint(backend: SqliteBackend): Promise<string | null> {
  return new Promise((resolve) => {
    const subscription = backend.subscribe(['mail'], (lane) => {
      subscription.stop()
      resolve(lane)
    })
  })
}

/** Ends the thread from inside, as a bug would. Stopping it from outside in a driver call can abort the whole process. */
function breakThread(backend: SqliteBackend): void {
  const worker: Worker = Reflect.get(Reflect.get(backend, 'thread'), 'worker')
  worker.postMessage(null)
}

test('a job goes through, values unchanged', async () => {
  const backend = await open({ path: freshPath() })
  const payload = new Uint8Array([1, 0, 255])
  await backend.call('job.enqueue', { jobs: [job('1', { payload })] })
  const { grants } = await backend.call('job.turn', { settlements: [], claims: [claim()], resend: false })
  expect(grants[0]?.jobs[0]?.payload).toEqual(payload)
})

test('what it says of itself depends on whether there is a file', async () => {
  const [file, memory] = [await open({ path: freshPath() }), await open()]
  expect(file.capabilities).toMatchObject({ durableJobs: true, durability: 'power', sameHostProcesses: true })
  expect(memory.capabilities).toMatchObject({ durableJobs: false, durability: 'none', sameHostProcesses: false })
  expect([file.capabilities.distributedWorkers, memory.capabilities.distributedWorkers]).toEqual([false, false])
})

test('an injected clock is the time of the store', async () => {
  const clock = new ManualClock()
  const backend = await open({ clock })
  await backend.call('job.enqueue', { jobs: [job('1', { delayMs: 86_400_000 })] })
  const turn = async () =>
    (await backend.call('job.turn', { settlements: [], claims: [claim()], resend: false })).grants[0]
  expect(await turn()).toMatchObject({ jobs: [], dueInMs: 86_400_000 })
  clock.ms += 86_400_000
  expect((await turn())?.jobs).toHaveLength(1)
  expect((await backend.call('store.health', {})).nowMs).toBe(clock.ms)
})

test('an enqueue, a promotion and the end of a pause are hinted', async () => {
  const backend = await open()
  const enqueued = hint(backend)
  await backend.call('job.enqueue', { jobs: [job('1')] })
  expect(await enqueued).toBe('mail')
  await backend.call('job.enqueue', { jobs: [job('2', { delayMs: 60_000 })] })
  const promoted = hint(backend)
  await backend.call('job.promote', { ids: ['mail/2'] })
  expect(await promoted).toBeNull()
  const resumed = hint(backend)
  await backend.call('queue.policy', { changes: [{ lane: 'mail', paused: false }] })
  expect(await resumed).toBe('mail')
})

/** Again and again: the first look of the watch only takes note of where the file stands. */
function keepWriting(store: ReturnType<typeof openStore>): () => void {
  let count = 0
  const writing = setInterval(() => {
    count += 1
    store.call('job.enqueue', { jobs: [job(`other${count}`)] })
  }, 20)
  return () => {
    clearInterval(writing)
    store.close()
  }
}

test('a commit by another connection is hinted', async () => {
  const path = freshPath()
  const backend = await open({ path })
  const changed = hint(backend)
  const other = openStore({ path })
  const stop = keepWriting(other)
  expect(await changed).toBeNull()
  stop()
})

test('the end of the thread rejects what waits, outcome unknown, and the next call starts another', async () => {
  const path = freshPath()
  const backend = await open({ path })
  await backend.call('job.enqueue', { jobs: [job('1')] })
  breakThread(backend)
  const waiting = [1, 2, 3].map(() => failureOf(backend.call('store.health', {})))
  for (const error of await Promise.all(waiting))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { path, outcome: 'unknown' } })
  expect((await backend.call('job.get', { ids: ['mail/1'] })).jobs[0]?.state).toBe('queued')
})

test('a thread that is started again still tells of commits by others', async () => {
  const path = freshPath()
  const backend = await open({ path })
  const changed = hint(backend)
  breakThread(backend)
  await failureOf(backend.call('store.health', {}))
  await backend.call('store.health', {})
  const other = openStore({ path })
  const stop = keepWriting(other)
  expect(await changed).toBeNull()
  stop()
})

test('a lock that is held too long is STORE_BUSY, one that is given up in time is waited for', async () => {
  const path = freshPath()
  const [hasty, patient] = [await open({ path, busyDeadlineMs: 30 }), await open({ path, busyDeadlineMs: 20_000 })]
  const rival = openStore({ path })
  rival.connection.database.exec('BEGIN IMMEDIATE')
  const served = patient.call('job.enqueue', { jobs: [job('2')] })
  const error = await failureOf(hasty.call('job.enqueue', { jobs: [job('1')] }))
  expect(error).toMatchObject({ code: 'STORE_BUSY', retryable: true, details: { path, outcome: 'notDone' } })
  rival.connection.database.exec('COMMIT')
  rival.close()
  expect((await served).results[0]?.outcome).toBe('created')
})

test('closing finishes what was sent, and later calls are refused', async () => {
  const path = freshPath()
  const backend = await open({ path })
  const sent = Array.from({ length: 20 }, (_, index) => backend.call('job.enqueue', { jobs: [job(String(index))] }))
  await backend.close()
  expect(await Promise.all(sent)).toHaveLength(20)
  expect((await failureOf(backend.call('store.health', {})))?.code).toBe('CLOSED')
  await backend.close()
  const store = openStore({ path })
  expect(store.call('queue.stats', { lanes: null }).lanes[0]?.counts.queued).toBe(20)
  store.close()
})

test('an open that fails rejects with what was found', async () => {
  const path = freshPath('none/x.db')
  await expect(open({ path })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', details: { path } })
})

test('a value that cannot cross to the thread is refused, and the backend goes on', async () => {
  const backend = await open()
  const error = await failureOf(backend.call('job.enqueue', { jobs: [job('1', { metadata: { run: () => 1 } })] }))
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { outcome: 'refused' } })
  expect((await backend.call('job.get', { ids: ['mail/1'] })).jobs).toEqual([null])
})

for (const [what, take] of [
  ['deleted', (path: string) => rmSync(path)],
  ['moved away', (path: string) => renameSync(path, `${path}.old`)],
] as const) {
  test(`what is accepted after the file was ${what} is where others find it`, async () => {
    const path = freshPath()
    const backend = await open({ path })
    await backend.call('job.enqueue', { jobs: [job('1')] })
    for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
    take(path)
    const refused = await failureOf(backend.call('job.enqueue', { jobs: [job('2')] }))
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, details: { outcome: 'notDone' } })
    await backend.call('job.enqueue', { jobs: [job('2')] })
    const other = await open({ path })
    const { jobs } = await other.call('job.get', { ids: ['mail/1', 'mail/2'] })
    expect(jobs.map((found) => found?.id ?? null)).toEqual([null, 'mail/2'])
  })
}
