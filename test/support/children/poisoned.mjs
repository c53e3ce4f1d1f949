// A worker some of whose jobs end its process the moment they run; the others take a few milliseconds.
import { setTimeout } from 'node:timers/promises'
import { args, connect, holdfast, told } from './store.mjs'

const { defineJob, handle } = holdfast
const hf = await connect()
const handler = handle(defineJob('task'), async (input) => {
  if (input === 'exit') process.exit(9)
  if (input === 'kill') process.kill(process.pid, 'SIGKILL')
  await setTimeout(5)
})
await hf.worker({ handlers: [handler], poll: 20, reap: 50, ...JSON.parse(args[0]) })
await told('stop')
await hf.close()
process.exit()
