// Enqueues numbered jobs in batches, each under a key of its own, and notes those that were accepted. What failed or was left unsaid
// is sent again under the same keys until it is accepted, also by the process that follows a killed one.
import { openSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { args, connect, holdfast, say, told } from './store.mjs'

const [ledger, name, options] = args
// The lanes are taken in turn; without any, all jobs go to the default one.
const { from, to, batch, everyMs, lanes } = JSON.parse(options)
const file = openSync(ledger, 'a')
const task = holdfast.defineJob('task', {
  maxCrashes: 1_000,
  retry: holdfast.retry.fixed(1_000, 50),
})
// A number says what becomes of its job, so that the parent knows it too.
const delayOf = (n) => (n % 10 === 3 ? 100 + (n % 1_000) : 0)

const hf = await connect()
say('ready')
let isStopped = false
void told('stop').then(() => {
  isStopped = true
})
for (let n = from; n < to && !isStopped; n += batch) {
  const numbers = Array.from({ length: Math.min(batch, to - n) }, (_, index) => n + index)
  const requests = numbers.map((number) => {
    const delay = delayOf(number)
    const queue = lanes === undefined ? {} : { queue: lanes[number % lanes.length] }
    const options = { idempotencyKey: `${name}-${number}`, ...queue, ...(delay > 0 ? { delay } : {}) }
    return { job: task, input: { failsFirst: number % 50 === 7 }, options }
  })
  for (;;) {
    try {
      const jobs = await hf.enqueueMany(requests)
      writeSync(file, jobs.map(({ id }, index) => `accepted ${name} ${numbers[index]} ${id}\n`).join(''))
      break
    } catch (error) {
      if (!error.retryable) throw error
      writeSync(file, `refused ${name} ${n} ${error.code} ${error.details.outcome}\n`)
    }
  }
  await setTimeout(everyMs)
}
say('done')
