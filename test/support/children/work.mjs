// A worker whose handler appends the id of its job to a file (O_APPEND) and then ends: `go`; never: `hold`; or when told: `untilTold`.
import { appendFileSync } from 'node:fs'
import { args, connect, holdfast, say, told } from './store.mjs'

const [lease, path, how] = args
const { defineJob, handle } = holdfast
const endings = { go: () => 'of the child', hold: () => new Promise(() => {}), untilTold: () => told('end') }
const hf = await connect()
const handler = handle(defineJob('task'), async (_input, ctx) => {
  appendFileSync(path, `${ctx.jobId}\n`)
  say('effect', ctx.jobId)
  await endings[how]()
  return 'of the child'
})
const worker = await hf.worker({ handlers: [handler], lease: Number(lease), poll: 20, reap: 40, killGrace: '1h' })
worker.on('lost', ({ jobId }) => say('lost', jobId))
worker.on('completed', ({ jobId }) => say('completed', jobId))
say('ready')
