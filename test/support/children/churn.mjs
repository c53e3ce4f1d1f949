// Claims and gives back as fast as the store allows, so that a kill hits a claim under way.
import { args, openRaw, say } from './store.mjs'

const backend = await openRaw()
let held = []
for (let turn = 0; ; turn += 1) {
  const settlements = held.map(({ id, token }) => ({
    kind: 'release',
    id,
    token,
    durationMs: 1,
    keepMs: null,
    started: false,
  }))
  const claim = {
    workerId: `churn-${process.pid}`,
    nonce: `${process.pid}-${turn}`,
    lanes: ['default'],
    limit: 7,
    leaseMs: Number(args[0]),
    keepDeadMs: null,
  }
  const { grants } = await backend.call('job.turn', { settlements, claims: [claim], resend: false })
  held = grants[0].jobs
  say('turn', held.length)
}
