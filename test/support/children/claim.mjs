// Claims one job and does nothing with it; told to, tries everything that only the owner of a lease may do.
import { args, openRaw, say, told } from './store.mjs'

const backend = await openRaw()
const claim = {
  workerId: 'child',
  nonce: `child-${process.pid}`,
  lanes: ['default'],
  limit: 1,
  leaseMs: Number(args[0]),
  keepDeadMs: null,
}
const { grants } = await backend.call('job.turn', { settlements: [], claims: [claim], resend: false })
const { id, token } = grants[0].jobs[0]
say('claimed', id)
await told('settle')
const base = { id, token, durationMs: 1, keepMs: null }
const settlements = [
  { ...base, kind: 'complete', output: '"of the child"', keepOutputMs: null },
  { ...base, kind: 'dead', code: 'PERMANENT_ERROR', failure: { code: 'PERMANENT_ERROR', message: 'no' }, crashes: 0 },
]
const { verdicts } = await backend.call('job.turn', { settlements, claims: [], resend: false })
const { outcomes } = await backend.call('lease.renew', { leases: [{ id, token }], leaseMs: 60_000 })
say('verdict', ...verdicts, ...outcomes)
