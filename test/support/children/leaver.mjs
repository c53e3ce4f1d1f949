// Uses a store in one way, closes it, and ends without being told to: nothing of the package may keep it alive. Says what nobody caught.
const dist = process.env.HOLDFAST_DIST ?? new URL('../../../dist', import.meta.url).pathname
const { connect, defineJob, handle, inThread } = await import(`${dist}/src/index.js`)
const [, , url, namespace, how] = process.argv
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`)

process.on('unhandledRejection', (error) => say('unhandled', error))
process.on('uncaughtException', (error) => say('unhandled', error))

const task = defineJob('task')
const ways = {
  /** Nobody listens there, or everybody does too late. */
  absent: () =>
    connect(url, { namespace, callDeadline: 700 }).then(
      () => say('connected'),
      ({ code, retryable, message }) => say('rejected', code, retryable, message),
    ),
  producer: async () => {
    const hf = await connect(url, { namespace })
    const { id } = await hf.enqueue(task, null)
    await hf.close()
    say('enqueued', id)
  },
  /** A worker with handlers everywhere, which have run. It stops and is started again before it stops for good. */
  everywhere: async () => {
    const hf = await connect(url, { namespace })
    const module = new URL('../handlers/conformance.mjs', import.meta.url)
    const handlers = [
      handle(task, ({ value }) => value),
      inThread(defineJob('thread'), module),
      inThread(defineJob('process'), module, { isolation: 'process' }),
      inThread(defineJob('passing'), module, { isolation: 'process', idleTimeout: 20, maxJobsPerThread: 1 }),
    ]
    for (const round of [1, 2]) {
      const worker = await hf.worker({ handlers, concurrency: 2 })
      for (const type of ['task', 'thread', 'process', 'passing']) {
        const job = await hf.enqueue(type, { act: 'echo', value: `${type} ${round}` })
        say(await job.result())
      }
      await worker.stop()
    }
    await hf.close()
  },
  /** A worker that is told when to stop. */
  worker: async () => {
    const hf = await connect(url, { namespace })
    const worker = await hf.worker({ handlers: [handle(task, () => say('ran'))] })
    const stop = new Promise((resolve) => {
      process.stdin.once('data', resolve)
    })
    say('ready')
    await stop
    process.stdin.destroy()
    const before = performance.now()
    await worker.stop({ deadline: 2_000 })
    say('stopped', performance.now() - before)
    await hf.close()
  },
}
await ways[how]()
say('closed', performance.now())
process.on('exit', () => say('exit', performance.now()))
