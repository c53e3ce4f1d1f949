// Enqueues, claims and completes one job after the other without any runtime, and says what the store has acknowledged.
import { args, openRaw, say } from './store.mjs'

const backend = await openRaw()
const [name] = args
const keep = { durationMs: 1, keepMs: null }
say('ready')
for (let n = 0; ; n += 1) {
  const id = `default/01${name}${String(n).padStart(23, '0')}`
  const job = {
    ...{ id, type: 'task', lane: 'default', payload: `"${'x'.repeat(200)}"`, priority: 0, runAt: null, delayMs: 0 },
    ...{ deadlineAt: null, timeoutMs: null, maxAttempts: 7, maxAttemptsFixed: false, retry: null, maxCrashes: 3 },
    ...{ idempotencyKey: null, metadata: null, traceId: null, keepResultMs: null, replayOf: null },
  }
  await backend.call('job.enqueue', { jobs: [job] })
  say('accepted', id)
  const claim = {
    workerId: name,
    nonce: `${name}-${n}`,
    lanes: ['default'],
    limit: 1,
    leaseMs: 60_000,
    keepDeadMs: null,
  }
  const { grants } = await backend.call('job.turn', { settlements: [], claims: [claim], resend: false })
  for (const held of grants[0].jobs) {
    say('granted', held.id, held.token)
    // Every fifth stays with a lease.
    if (n % 5 === 4) continue
    const settlement = { id: held.id, token: held.token, ...keep, kind: 'complete', output: '1', keepOutputMs: null }
    const { verdicts } = await backend.call('job.turn', { settlements: [settlement], claims: [], resend: false })
    say('settled', held.id, verdicts[0])
  }
}
