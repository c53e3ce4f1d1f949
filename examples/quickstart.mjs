// One job from enqueue to explanation, on a SQLite file: validated, run, failed once, retried, looked at.
// Run: node examples/quickstart.mjs
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, defineJob, handle, retry } from 'holdfast'

// The engine logs failed attempts to standard error; here they are part of the plan.
process.env.HOLDFAST_LOG ??= 'silent'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
const greet = defineJob('greet', { retry: retry.fixed(3, '100ms'), timeout: '5s' })

const hf = await connect(`sqlite:${join(folder, 'jobs.db')}`)

// A producer: the job is on disk when this resolves. The same key never makes a second job.
const job = await hf.enqueue(greet, { name: 'Ada' }, { idempotencyKey: 'greet:ada' })
const again = await hf.enqueue(greet, { name: 'Ada' }, { idempotencyKey: 'greet:ada' })
console.log(`enqueued ${job.id}; enqueued again: the same job is ${again.id === job.id}`)

// A worker, here in the same process; any other process with the same URL may run it.
const worker = await hf.worker({
  handlers: [
    handle(greet, ({ name }, ctx) => {
      if (ctx.attempt === 1) throw new Error('the greeter is still asleep')
      return `hello ${name}`
    }),
  ],
})

console.log(`failed once, then: ${await job.result({ timeout: '30s' })}`)

const story = await hf.explain(job.id)
console.log(story.summary)
for (const { kind, state, error } of story.events) {
  console.log(`  ${kind} ${state}${error === null ? '' : ` (${error.code}: ${error.message})`}`)
}
const { counts } = await hf.stats()
console.log(`${counts.completed} completed, ${counts.dlq} in the dead letters`)

await worker.stop()
await hf.close()
rmSync(folder, { recursive: true })
