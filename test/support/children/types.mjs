// A worker that never ends a job of the types whose leases it is told, such as `{"fast":"2s","slow":"12s"}`; its own lease is the default.
import { args, connect, holdfast, say } from './store.mjs'

const { defineJob, handle } = holdfast
const [leases] = args
const hf = await connect()
const handlers = Object.entries(JSON.parse(leases)).map(([type, lease]) =>
  handle(defineJob(type, { lease }), () => {
    say('started', type)
    return new Promise(() => {})
  }),
)
await hf.worker({ handlers, poll: 20 })
say('ready')
