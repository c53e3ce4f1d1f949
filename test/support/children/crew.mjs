// A worker of a crew: appends the start and the end of every run to a ledger (O_APPEND, one write a line), and ends when its parent does.
import { openSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { args, connect, holdfast, say, told } from './store.mjs'

const { defineJob, handle } = holdfast
const [ledger, options] = args
const { workMs = 0, ...workerOptions } = JSON.parse(options)
const file = openSync(ledger, 'a')
const note = (...words) => writeSync(file, `${words.join(' ')}\n`)

const hf = await connect()
const task = handle(defineJob('task'), async (input, { jobId, attempt, leaseEpoch }) => {
  note('start', jobId, attempt, leaseEpoch, process.pid)
  const blockedUntil = attempt === 1 ? performance.now() + (input.blockMs ?? 0) : 0
  while (performance.now() < blockedUntil);
  const heldMs = attempt === 1 && input.holdMs !== undefined ? input.holdMs : Math.random() * workMs
  if (heldMs > 0) await setTimeout(heldMs)
  if (input.failsFirst && attempt === 1) throw new Error('as it was told')
  note('end', jobId, attempt, leaseEpoch, process.pid)
  return leaseEpoch
})
const worker = await hf.worker({ handlers: [task], ...workerOptions })
for (const event of ['lost', 'blocked']) worker.on(event, () => say(event))
say('ready')
await told('stop')
await worker.stop({ deadline: '10s' })
await hf.close()
say('stopped')
process.exit()
