// Opens the store, says so, enqueues one job and runs whatever there is until it is told to stop.
import { connect, holdfast, say, told } from './store.mjs'

const hf = await connect()
say('opened')
await told('go')
const { id } = await hf.enqueue('task', null)
say('enqueued', id)
const handler = holdfast.handle(holdfast.defineJob('task'), (_, { jobId }) => say('ran', jobId))
const worker = await hf.worker({ handlers: [handler], poll: 50 })
await told('stop')
await worker.stop()
await hf.close()
say('stopped')
process.exit()
