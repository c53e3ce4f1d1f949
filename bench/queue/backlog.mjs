// The rate of the first jobs of a long backlog, beside the rate of a short one; counted from the first handler on.
import { perSecond, prove } from '../scenario/shared.mjs'
import { fill, settled, workUntil } from './work-until.mjs'

const MEASURED = 20_000
const SHORT = 10_000
const SHORT_ROUNDS = 5

async function rateOf(queue, options, { waiting, goal }) {
  await fill(queue, waiting, options.payloadBytes)
  const { worker, fromFirst } = await workUntil(queue, options.concurrency, goal)
  if (goal === waiting) await settled(queue)
  await worker.stop()
  return perSecond(goal, fromFirst)
}

export async function backlog(module, options) {
  const queue = await module.open(options)
  const short = []
  const few = Math.min(SHORT, options.jobs)
  for (let round = 0; round < SHORT_ROUNDS; round += 1) {
    short.push(await rateOf(queue, options, { waiting: few, goal: few }))
  }
  prove('backlog', few - (await queue.waiting()), few)
  const long = await rateOf(queue, options, { waiting: options.jobs, goal: Math.min(MEASURED, options.jobs) })
  await queue.close()
  const shortRate = short.sort((a, b) => a - b)[Math.floor(SHORT_ROUNDS / 2)]
  return { value: long, extra: { short: shortRate, ofShort: long / shortRate } }
}
