/** Backends on a private server, and the messages of a whole life of jobs, for the tests of the Redis store. */
import { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { systemClock } from '#dist/src/clock.js'
import type { JobDefinition } from '#dist/src/job.js'
import { systemRandom } from '#dist/src/random.js'
import { announce, beatOf } from '../support/protocol.ts'

export const openBackend = (url: string, namespace: string): Promise<RedisBackend> =>
  RedisBackend.open({
    location: parseRedisUrl(url),
    namespace,
    clock: systemClock,
    random: systemRandom,
    warn: () => {},
    openDeadlineMs: 10_000,
  })

export const job = (id: string, overrides: Partial<JobDefinition> = {}): JobDefinition => ({
  id: `mail/${id}`,
  type: 'send',
  lane: 'mail',
  payload: '{"to":"a@b.c"}',
  priority: 0,
  runAt: null,
  delayMs: 0,
  deadlineAt: null,
  timeoutMs: null,
  maxAttempts: 7,
  maxAttemptsFixed: false,
  maxCrashes: 3,
  retry: null,
  idempotencyKey: null,
  concurrencyKey: null,
  metadata: null,
  traceId: null,
  keepResultMs: null,
  replayOf: null,
  ...overrides,
})

const failure = { code: 'X', message: 'x' }
const POLICY = { strategy: 'exponential', base: 1000, cap: 60_000, factor: 2, jitter: 'none' } as never

export const claim = (limit: number, leaseMs = 60_000, lanes: readonly string[] = ['mail']) => ({
  workerId: 'w',
  nonce: `n${limit}`,
  lanes,
  limit,
  leaseMs,
  keepDeadMs: null,
})

/** A job of every kind, from its enqueue to its end, and everything an operator asks. Rejects with the first refusal. */
export async function wholeLife(backend: RedisBackend, name: string): Promise<void> {
  const of = (id: string) => `${name}-${id}`
  const now = Date.now()
  await backend.call('job.enqueue', {
    jobs: [
      ...['a', 'b', 'c', 'd', 'e', 'f'].map((id) => job(of(id))),
      job(of('late'), { runAt: now + 3_600_000, idempotencyKey: of('key') }),
      job(of('high'), { priority: 5 }),
    ],
  })
  await backend.call('job.enqueue', { jobs: [job(of('g')), job(of('h'))] })
  await backend.call('job.cancel', { ids: [`mail/${of('h')}`], force: false, keepMs: 1 })
  const first = await backend.call('job.turn', { settlements: [], claims: [claim(6)], resend: false })
  const held = first.grants[0]?.jobs ?? []
  const base = held.map(({ id, token }) => ({ id, token, durationMs: 1, keepMs: null }))
  const [high, a, b, c, d, e] = base
  if (!high || !a || !b || !c || !d || !e) throw new Error(`claimed ${held.length} of 6 jobs`)
  await backend.call('lease.renew', { leases: [a, { id: 'mail/none', token: '1:w:n.0' }], leaseMs: 60_000 })
  await backend.call('job.note', {
    notes: [{ ...a, progress: '1', lines: [{ number: 1, text: '{}' }], keepLines: 9 }],
  })
  await backend.call('job.logs', { queries: [{ id: a.id, after: null, limit: 9 }] })
  await backend.call('job.states', { ids: [a.id] })
  await backend.call('job.cancel', { ids: [e.id], force: false, keepMs: null })
  await backend.call('job.turn', {
    settlements: [
      { ...high, kind: 'complete', output: null, keepMs: 0, keepOutputMs: null },
      { ...a, kind: 'complete', output: '1', keepMs: 1, keepOutputMs: 1 },
      { ...b, kind: 'retry', delayMs: 60_000, failure, crashes: 0, retry: POLICY, maxAttempts: 7 },
      { ...c, kind: 'dead', code: 'X', failure, crashes: 0 },
      { ...d, kind: 'release', started: true },
      { ...e, kind: 'cancel', failure },
    ],
    claims: [],
    resend: false,
  })
  await backend.call('job.promote', { ids: [b.id] })
  await backend.call('job.get', { ids: [b.id, c.id] })
  await backend.call('job.history', { ids: [b.id] })
  await backend.call('job.list', { lane: null, states: null, type: null, limit: 10, cursor: null })
  await backend.call('job.turn', { settlements: [], claims: [claim(50, 1)], resend: false })
  await backend.call('lease.reap', { decisions: [], limit: 10 })
  await backend.call('job.enqueue', { jobs: [job(of('i'), { deadlineAt: now - 1000 })] })
  await backend.call('job.turn', { settlements: [], claims: [claim(5)], resend: true })
  await backend.call('job.turn', { settlements: [], claims: [claim(1, 1000, ['mail', 'x', 'y', 'z'])], resend: false })
  await backend.call('queue.policy', { changes: [{ lane: 'mail', paused: true }] })
  await backend.call('queue.policy', { changes: [{ lane: 'mail', paused: false }] })
  const limits = { maxInFlight: 9, maxPerKey: 1, enqueueRate: { limit: 9, perMs: 1_000, burst: 9 } }
  await backend.call('queue.policy', { changes: [{ lane: 'shared', ...limits }] })
  const shared = (id: string) => ({ ...job(of(id), { lane: 'shared', concurrencyKey: 't' }), id: `shared/${of(id)}` })
  await backend.call('job.enqueue', { jobs: [shared('j'), shared('k'), shared('l')] })
  await backend.call('job.turn', { settlements: [], claims: [claim(3, 60_000, ['shared'])], resend: false })
  await backend.call('job.turn', { settlements: [], claims: [claim(3, 60_000, ['shared'])], resend: false })
  await backend.call('job.cancel', { ids: [shared('k').id], force: false, keepMs: null })
  const none = { maxInFlight: null, maxPerKey: null, enqueueRate: null }
  await backend.call('queue.policy', { changes: [{ lane: 'shared', ...none }], usage: ['shared'] })
  await backend.call('queue.stats', { lanes: null })
  await backend.call('store.maintain', { limit: 100, keepDeadMs: null })
  await backend.call('store.health', { rights: true })
  await announce(backend, [beatOf(of('worker'))])
  await announce(backend, [], [of('worker')])
  await backend.call('worker.list', { forgetAfterMs: 60_000, limit: 10 })
  await backend.call('job.ahead', { ids: [`mail/${of('a')}`, `mail/${of('high')}`], limit: 10 })
}
