// A worker whose handler does what it is told to its main loop: `spin` for a time, `spinUntil` a file is there, or `wait` for a word
// and then try to write; `held`: not before it is told to block. The last argument is the lease of the type, if it has one. Says every call that its main loop makes to the store, and what its worker and its signal tell.
import { existsSync } from 'node:fs'
import { args, connect, holdfast, say, told } from './store.mjs'

const { defineJob, handle } = holdfast
const [how, detail, options, isHeld, lease] = args
const threads = []
process.on('worker', (thread) => {
  threads.push(thread)
  thread.once('exit', () => threads.splice(threads.indexOf(thread), 1))
})

const codeOf = (work) =>
  work.then(
    () => 'done',
    ({ code }) => code,
  )
const ways = {
  spin: () => {
    const until = performance.now() + Number(detail)
    while (performance.now() < until);
  },
  spinUntil: () => {
    while (!existsSync(detail));
  },
  wait: async (ctx) => {
    ctx.signal.addEventListener('abort', () => say('signal', ctx.signal.reason.code))
    await told('write')
    say('progress', await codeOf(ctx.progress('of the child')))
    say('enqueue', await codeOf(ctx.enqueue('other', null)))
  },
}

const hf = await connect((type) => say('call', type))
const handler = handle(defineJob('task', lease === undefined ? {} : { lease: Number(lease) }), async (_input, ctx) => {
  say('started', ctx.jobId)
  if (isHeld === 'held') await told('block')
  await ways[how](ctx)
  return 'of the child'
})
const worker = await hf.worker({ handlers: [handler], poll: 20, reap: 40, killGrace: 50, ...JSON.parse(options) })
worker.on('blocked', ({ blockedMs }) => say('blocked', blockedMs))
worker.on('lost', ({ jobId }) => say('lost', jobId))
worker.on('completed', ({ jobId }) => say('completed', jobId))
const keeperIs = async (who) => {
  for (;;) if ((await hf.health()).leases.keeper === who) return say('keeper', who)
}
await keeperIs(JSON.parse(options).maxBlocked === 0 ? 'main' : 'thread')
say('ready')
void told('terminate').then(async () => {
  await threads[0].terminate()
  await keeperIs('main')
  await keeperIs('thread')
  say('replaced')
})
await told('stop')
await worker.stop()
await hf.close()
say('threads', threads.length)
