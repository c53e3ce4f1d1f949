// Enqueues many jobs at once under few keys, and says which id each key was answered with.
import { args, connect, holdfast, say, told } from './store.mjs'

const [count, keys] = args.map(Number)
const task = holdfast.defineJob('task')
const hf = await connect()
say('ready')
await told('go')
const answers = await Promise.all(
  Array.from({ length: count }, async (_, index) => {
    const key = `k${index % keys}`
    const { id } = await hf.enqueue(task, index, { idempotencyKey: key })
    return [key, id]
  }),
)
say('answers', JSON.stringify([...new Set(answers.map((pair) => pair.join(' ')))]))
await hf.close()
process.exit()
