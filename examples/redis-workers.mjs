// Three worker processes share one Redis; one of them is killed in the middle of its work, and nothing is lost.
// Run: REDIS_URL=redis://127.0.0.1:6379 node examples/redis-workers.mjs
import { fork } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { connect, defineJob, handle } from 'holdfast'

process.env.HOLDFAST_LOG ??= 'silent'
const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const resize = defineJob('image.resize', { queue: 'images' })
const namespace = process.argv[2] ?? `example-${process.pid}`
const hf = await connect(url, { namespace })

if (process.argv[2] === undefined) await main()
else await work()

/** What each worker process does. A short lease finds out soon that a process is gone. */
async function work() {
  const handler = handle(resize, async ({ name }) => {
    await setTimeout(5)
    return `${name} resized by process ${process.pid}`
  })
  const worker = await hf.worker({ handlers: [handler], lanes: ['images'], concurrency: 4, lease: '2s', reap: '500ms' })
  process.on('message', async () => {
    await worker.stop()
    await hf.close()
    process.disconnect()
  })
}

async function main() {
  const { durability } = hf.capabilities
  console.log(`this Redis promises durability '${durability}'`)
  const jobs = await hf.enqueueMany(
    Array.from({ length: 300 }, (_, n) => ({ job: resize, input: { name: `photo-${n}.jpg` } })),
  )
  const workers = Array.from({ length: 3 }, () => fork(process.argv[1], [namespace]))
  await jobs[0].result({ timeout: '20s' })
  workers[0].kill('SIGKILL')
  console.log('one of three workers was killed')
  const results = await Promise.all(jobs.map((job) => job.result({ timeout: '60s' })))
  const { counts } = await hf.stats('images')
  const owners = new Set(results.map((text) => text.split(' ').at(-1)))
  console.log(
    `${counts.completed} of ${jobs.length} completed by ${owners.size} processes, ${counts.dlq} in the dead letters`,
  )
  for (const worker of workers.slice(1)) worker.send('stop')
  await hf.close()
}
