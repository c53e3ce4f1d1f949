// A worker some of whose jobs end its process as soon as they run; the others take a few milliseconds.
import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { args, connect, holdfast, told } from './store.mjs'

const { defineJob, handle } = holdfast
const hf = await connect()
const handler = handle(defineJob('task'), async (input) => {
  if (input === 'exit') process.exit(9)
  // A native crash in a thread is the end of its whole process.
  if (input === 'crash') {
    new Worker("process.kill(process.pid, 'SIGSEGV')", { eval: true })
    await new Promise(() => {})
  }
  await setTimeout(5)
})
await hf.worker({ handlers: [handler], poll: 20, reap: 50, ...JSON.parse(args[0]) })
await told('stop')
await hf.close()
process.exit()
