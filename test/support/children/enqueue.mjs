// Enqueues under one key after the other and says each that was acknowledged.
import { args, holdfast, say, url } from './store.mjs'

const hf = await holdfast.connect(url)
for (let n = 0; ; n += 1) {
  const key = `${args[0]}-${n}`
  const { id } = await hf.enqueue('task', { n }, { idempotencyKey: key })
  say('created', key, id)
}
