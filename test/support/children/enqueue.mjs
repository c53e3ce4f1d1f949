// Enqueues under one key after the other and says each that was acknowledged.
import { args, connect, say } from './store.mjs'

const hf = await connect()
for (let n = 0; ; n += 1) {
  const key = `${args[0]}-${n}`
  const { id } = await hf.enqueue('task', { n }, { idempotencyKey: key })
  say('created', key, id)
}
