// Handlers in threads: one computes while the main loop stays free, one ends its thread, one never ends. None harms the others.
// Run: node examples/threads.mjs
import { connect, defineJob, inThread, retry } from 'holdfast'

process.env.HOLDFAST_LOG ??= 'silent'

const module = new URL('./threads-handler.mjs', import.meta.url)
const primes = defineJob('primes')
const crash = defineJob('crash', { retry: retry.immediate(10), maxCrashes: 3 })
const endless = defineJob('endless', { retry: retry.none(), timeout: '300ms' })

const hf = await connect('memory:')
const worker = await hf.worker({
  handlers: [primes, crash, endless].map((contract) => inThread(contract, module)),
  concurrency: 3,
})

const jobs = {
  primes: await hf.enqueue(primes, { below: 2_000_000 }),
  crash: await hf.enqueue(crash, { exit: true }),
  endless: await hf.enqueue(endless, { loop: true }),
}

let ticks = 0
const timer = setInterval(() => {
  ticks += 1
}, 5)
const count = await jobs.primes.result({ timeout: '1m' })
console.log(`primes below 2,000,000: ${count.toLocaleString('en-US')}`)

// Both end in the dead letters: one after three crashes in a row, one because its timeout terminated its thread.
for (const name of ['crash', 'endless']) {
  const error = await jobs[name].result({ timeout: '1m' }).catch((reason) => reason)
  const job = await hf.get(jobs[name].id)
  console.log(`${name}: ${error.code}, dead-lettered with ${job.dlqCode}, last error ${job.lastFailure.code}`)
}
clearInterval(timer)
console.log(`meanwhile the main loop went on: ${ticks > 0}`)

await worker.stop()
await hf.close()
