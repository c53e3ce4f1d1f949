/** One worker process is killed, frozen or held up at a chosen moment, and another one lives on. */
import { writeFileSync } from 'node:fs'
import { defineJob, type Holdfast, retry } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { loadCatalog } from '#dist/src/lua/catalog.js'
import { type Ledger, readLedger, violations } from '../chaos/ledger.ts'
import { Child } from '../support/child.ts'
import { lookFor } from '../support/look.ts'
import type { FaultProxy } from '../support/proxy.ts'
import { miscounts, QUICK, RedisStage } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const scripts = loadCatalog()
const task = defineJob<object>('task', { maxCrashes: 100, retry: retry.fixed(100, 20) })

interface Scene {
  readonly hf: Holdfast
  readonly proxy: FaultProxy
  readonly path: string
  /** A worker process behind the proxy, and one that is not. */
  crew(url: string, options?: object, env?: Readonly<Record<string, string>>): Child
  ledger(): Ledger
  /** Resolves when nothing is left to do; then nothing may be wrong. */
  settle(): Promise<void>
  readonly url: string
}

async function scene(): Promise<Scene> {
  const server = await stage.server()
  const proxy = await stage.proxy(server)
  const path = await stage.file('ledger')
  writeFileSync(path, '')
  const hf = await stage.client(server.url)
  // Else the first reply of each is that the server does not know it.
  for (const { source } of Object.values(scripts)) await server.command('SCRIPT', 'LOAD', source)
  const settle = async (): Promise<void> => {
    await lookFor('all jobs are done', async () => {
      const { counts, total } = await hf.stats()
      return counts.completed === total ? true : undefined
    })
    expect(await violations(hf, readLedger(path))).toEqual([])
    expect(await miscounts(server, stage.namespace)).toEqual([])
  }
  return {
    hf,
    proxy,
    path,
    url: server.url,
    crew: (url, options = {}, env = {}) => {
      const worker = JSON.stringify({ ...QUICK, concurrency: 1, prefetch: 0, ...options })
      const child = new Child('crew.mjs', [url, stage.namespace, path, worker], env)
      stage.defer(() => child.kill())
      return child
    },
    ledger: () => readLedger(path),
    settle,
  }
}

/** What a script is sent as. */
const isCall =
  (name: keyof typeof scripts) =>
  (request: Buffer): boolean =>
    request.includes(scripts[name].sha1)

describe('F1 a process is killed between what it sends and the reply', () => {
  const ends = ['dropRequests', 'dropReplies'] as const
  const hit = ({ counters }: FaultProxy): Promise<true> =>
    lookFor('the request came', async () => (counters.droppedRequests + counters.droppedReplies > 0 ? true : undefined))

  it.each(ends)('enqueue, %s: the next process asks under the same key, and there is one job', async (mode) => {
    const { hf, proxy, path, url, crew, settle, ledger } = await scene()
    proxy.set({ mode, when: isCall('job_enqueue') })
    const production = JSON.stringify({ from: 0, to: 1, batch: 1, everyMs: 0 })
    const child = stage.child('producer.mjs', proxy.url, path, 'p1', production)
    await hit(proxy)
    await child.kill()
    expect((await hf.stats()).total).toBe(mode === 'dropReplies' ? 1 : 0)
    await stage.child('producer.mjs', url, path, 'p1', production).line('done')
    crew(url)
    await settle()
    expect((await hf.stats()).total).toBe(1)
    expect([...ledger().accepted.values()].map(({ size }) => size)).toEqual([1])
  })

  it.each(ends)('claim, %s: the job runs once, elsewhere', async (mode) => {
    const { hf, proxy, url, crew, settle, ledger } = await scene()
    const { id } = await hf.enqueue(task, {})
    proxy.set({ mode, when: isCall('job_claim') })
    const child = crew(proxy.url)
    await hit(proxy)
    await child.kill()
    expect((await hf.get(id))?.state).toBe(mode === 'dropReplies' ? 'running' : 'queued')
    crew(url)
    await settle()
    expect(ledger().runs.get(id)?.length).toBe(1)
    expect((await hf.attempts(id)).length).toBe(mode === 'dropReplies' ? 2 : 1)
  })

  it.each(ends)('outcome, %s: it is stored or the job runs again', async (mode) => {
    const { hf, proxy, url, crew, settle, ledger } = await scene()
    const { id } = await hf.enqueue(task, { holdMs: 200 })
    const hasStarted = (): boolean => ledger().runs.has(id)
    proxy.set({ mode, when: (request) => isCall('job_turn')(request) && hasStarted() })
    const child = crew(proxy.url)
    await hit(proxy)
    await child.kill()
    expect((await hf.get(id))?.state).toBe(mode === 'dropReplies' ? 'completed' : 'running')
    crew(url)
    await settle()
    expect(ledger().runs.get(id)?.length).toBe(mode === 'dropReplies' ? 1 : 2)
  })

  it.each(ends)('renewal, %s: the job runs again once the lease is over', async (mode) => {
    const { hf, proxy, url, crew, settle, ledger } = await scene()
    const { id } = await hf.enqueue(task, { holdMs: 60_000 })
    proxy.set({ mode, when: isCall('lease_renew') })
    const child = crew(proxy.url)
    await hit(proxy)
    await child.kill()
    crew(url)
    await settle()
    expect(ledger().runs.get(id)?.length).toBe(2)
  })
})

it('F3 frozen for three leases: the first thing it does then is renew, its handler is told, its outcome is refused', async () => {
  const { hf, proxy, url, crew, settle, ledger } = await scene()
  const { id } = await hf.enqueue(task, { holdMs: 1_000 })
  const sent: string[] = []
  const names = ['lease_renew', 'job_turn', 'job_claim', 'lease_reap'] as const
  const when = (request: Buffer): boolean => {
    const name = names.find((each) => isCall(each)(request))
    if (name !== undefined) sent.push(name)
    return false
  }
  proxy.set({ mode: 'dropRequests', when })
  const frozen = crew(proxy.url)
  await lookFor('it runs', async () => (ledger().runs.has(id) ? true : undefined))
  frozen.signal('SIGSTOP')
  crew(url)
  await lookFor('the other one has done it', async () => ((await hf.get(id))?.state === 'completed' ? true : undefined))
  sent.length = 0
  frozen.signal('SIGCONT')
  await frozen.line('lost')
  expect(sent[0]).toBe('lease_renew')
  await settle()
  expect(ledger().runs.get(id)?.length).toBe(2)
})

it('F4 a handler that blocks the main loop for three leases keeps its job, and the worker says so', async () => {
  const { hf, url, crew, settle, ledger } = await scene()
  const blocked = crew(url)
  await blocked.line('ready')
  const { id } = await hf.enqueue(task, { blockMs: 3 * QUICK.lease })
  await lookFor('it runs', async () => (ledger().runs.has(id) ? true : undefined))
  crew(url)
  await settle()
  await blocked.line('blocked')
  expect(ledger().runs.get(id)?.length).toBe(1)
})

it('F10 the clocks of workers and producers are hours apart: leases and delays do not care', async () => {
  const { hf, path, url, crew, settle, ledger } = await scene()
  const clocks = await Promise.all([stage.clock(), stage.clock(), stage.clock()])
  for (const [index, clock] of clocks.entries()) clock.set([3_600_000, -3_600_000, 7_200_000][index] ?? 0)
  const [ahead, behind, further] = clocks.map(({ env }) => env)
  const crews = [ahead, behind].map((env) => crew(url, { concurrency: 4, workMs: 700 }, env ?? {}))
  await Promise.all(crews.map((each) => each.line('ready')))
  const production = JSON.stringify({ from: 0, to: 40, batch: 10, everyMs: 10 })
  const producer = new Child('producer.mjs', [url, stage.namespace, path, 'p1', production], further)
  stage.defer(() => producer.kill())
  await producer.line('done')
  await settle()
  expect(ledger().accepted.size).toBe(40)
  const repeated = [...ledger().runs.values()].filter((runs) => runs.length > 1).length
  // Those that fail at first because they were told to: no lease was lost.
  const failed = (await Promise.all([...ledger().runs.keys()].map((id) => hf.attempts(id)))).flat()
  expect(failed.filter(({ outcome }) => outcome === 'crashed')).toEqual([])
  expect(repeated).toBe(1)
})
