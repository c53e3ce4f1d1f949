// One handler that does what its input says; `holdfast` is loaded from the build, as an application's module would.
import { execSync, spawn } from 'node:child_process'
import { openSync, readSync } from 'node:fs'
import { parentPort, resourceLimits, threadId } from 'node:worker_threads'
import { PermanentError, RetryAfter } from '#dist/src/errors.js'

/** Tells threads apart, and processes. */
const here = `${process.pid}.${threadId}`

export function setup() {
  return { setupThread: here, setups: globalSetups() }
}

let count = 0
const globalSetups = () => {
  count += 1
  return count
}

let leftOver = null

async function forgeInProcess(ctx) {
  const call = { call: 1, value: 'forged' }
  const foreign = [
    { type: 'reply', task: 1e9, reply: [0, 'forged'] },
    { type: 'progress', task: 1e9, ...call },
  ]
  const junk = [null, 7, 'text', {}, { type: 'log' }, { type: 'reply' }, { type: 'loaded' }, ...foreign]
  for (const message of junk) if (message !== null) process.send(message)
  await ctx.progress('after the forgeries')
}

class Money {
  amount = 3
}

const acts = {
  echo: (input) => input.value,
  thread: () => here,
  context: (_input, ctx) => ({ ...ctx.context, thread: here }),
  describe: (_input, ctx) => {
    const { progress, enqueue, log, signal, context, ...plain } = ctx
    return { ...plain, aborted: signal.aborted, kinds: [typeof progress, typeof enqueue, typeof log.info] }
  },
  throws: (input) => {
    throw Object.assign(new TypeError(input.message, { cause: new Error('below') }), { code: 'E_CUSTOM', fn: () => 1 })
  },
  throwsText: () => {
    throw 'plain text'
  },
  permanent: () => {
    throw new PermanentError('no use', { code: 'BAD_CARD' })
  },
  retryAfter: () => {
    throw new RetryAfter('30s')
  },
  returnsFunction: () => ({ list: [1, { callback: () => 1 }] }),
  returnsInstance: () => ({ price: new Money() }),
  returnsProxy: () => new Proxy({}, {}),
  returnsPort: () => new MessageChannel().port1,
  returnsDetached: () => {
    const bytes = new Uint8Array(8)
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    return { list: [{ bytes }] }
  },
  returnsFlip: () => {
    let reads = 0
    const next = () => {
      reads += 1
      return reads === 1 ? 'first' : () => 1
    }
    return {
      get flips() {
        return next()
      },
    }
  },
  returnsThrowing: () => ({
    get trap() {
      throw new Error('sprung')
    },
  }),
  returnsSparse: () => ({ list: new Array(2 ** 32 - 1) }),
  returnsMap: () => ({ map: new Map() }),
  returnsBuffer: () => Buffer.from('abc'),
  returnsRich: () => ({ at: new Date(5), bytes: new Uint8Array([1, 2]), big: 7n, none: undefined, not: Number.NaN }),
  exit: (input) => process.exit(input.code),
  timerThrows: async () => {
    setTimeout(() => {
      throw new Error('thrown in a timer')
    }, 1)
    await new Promise(() => {})
  },
  rejects: async () => {
    void Promise.reject(new Error('nobody caught this'))
    await new Promise(() => {})
  },
  leavesTimer: () => {
    setTimeout(() => {
      throw new Error('thrown after the end')
    }, 100)
  },
  fillsHeap: () => {
    const kept = []
    for (;;) kept.push({ text: `${kept.length}-${'x'.repeat(10)}`, list: [1, 2, 3, kept.length] })
  },
  loops: () => {
    for (;;);
  },
  awaitsForever: () => new Promise(() => {}),
  untilAborted: (_input, ctx) =>
    new Promise((resolve) => {
      ctx.log.info('listening')
      const report = () => resolve({ ...ctx.signal.reason, message: ctx.signal.reason.message })
      if (ctx.signal.aborted) report()
      else ctx.signal.addEventListener('abort', report)
    }),
  looksAtSignalLate: async (_input, ctx) => {
    await ctx.progress('before the signal is looked at')
    return { aborted: ctx.signal.aborted, code: ctx.signal.reason?.code }
  },
  progress: async (input, ctx) => {
    await ctx.progress(input.value)
    return 'kept'
  },
  progressRefused: (input, ctx) =>
    ctx.progress(input.value).then(
      () => 'accepted',
      (error) => ({ name: error.name, code: error.code, message: error.message, details: error.details }),
    ),
  dropsPromises: (_input, ctx) => {
    ctx.progress(() => 1)
    ctx.progress('refused by main')
    ctx.enqueue('child', new Money())
  },
  enqueue: (input, ctx) => ctx.enqueue(input.type, input.input, input.options),
  enqueueContract: (input, ctx) =>
    ctx.enqueue(contract, input.input).catch((error) => ({ code: error.code, message: error.message })),
  enqueuesLast: (_input, ctx) => {
    ctx.progress('last progress')
    ctx.enqueue(contract, { n: 2 })
  },
  logs: (input, ctx) => {
    for (let line = 0; line < input.lines; line += 1) ctx.log.info({ line }, 'a line')
    ctx.log.warn('text only')
    ctx.log.error(Object.assign(new Error('logged'), { code: 'E_LOGGED', fn: () => 1 }))
    ctx.log.debug({ odd: new Money(), worse: () => 1, err: new Error('inner') }, 'odd fields')
  },
  logsWithoutPause: (input, ctx) => {
    for (let line = 0; line < input.lines; line += 1) ctx.log.info({ line }, 'a line')
  },
  logsInPortions: async (input, ctx) => {
    for (let line = 0; line < input.lines; line += 1) {
      ctx.log.info({ line }, 'a line')
      if (line % 200 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  },
  logsBurstThenWaits: async (input, ctx) => {
    for (let line = 0; line < input.lines; line += 1) ctx.log.info({ line }, 'a line')
    await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
  },
  howItPosts: () => parentPort.postMessage.name,
  logsEveryLevel: (_input, ctx) => {
    for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) ctx.log[level](level)
  },
  logsHostile: (_input, ctx) => {
    let calls = 0
    const run = () => {
      calls += 1
      throw new Error('never')
    }
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const fields = {
      a: 1,
      get trap() {
        return run()
      },
      inside: { toJSON: run, fn: run },
      proxy,
    }
    ctx.log.info(fields, 'fields')
    ctx.log.info(proxy, Symbol('text'))
    return calls
  },
  logsThenExits: (input, ctx) => {
    for (let line = 0; line < input.lines; line += 1) ctx.log.info(`line ${line}`)
    ctx.log.fatal('last words')
    process.exit(3)
  },
  keeps: (_input, ctx) => {
    leftOver = ctx
  },
  usesKept: async () => {
    leftOver.log.info('from the grave')
    const code = (promise) =>
      promise.then(
        () => 'accepted',
        (error) => error.code,
      )
    return [await code(leftOver.progress(1)), await code(leftOver.enqueue('child', 1)), leftOver.signal.aborted]
  },
  forges: async (_input, ctx) => {
    if (parentPort === null) return forgeInProcess(ctx)
    parentPort.postMessage({ type: 'anything' })
    parentPort.postMessage('text')
    parentPort.postMessage(null)
    const { port1, port2 } = new MessageChannel()
    parentPort.postMessage({ type: 'holdfast.port', port: port2 }, [port2])
    for (const junk of [null, 7, {}, { type: 'log' }, { type: 'progress', task: 1e9, call: 1, value: 'forged' }]) {
      port1.postMessage(junk)
    }
    await ctx.progress('after the forgeries')
    port1.close()
  },
  environment: () => Object.keys(process.env),
  sleeps: ({ seconds, file }) => execSync(`echo $$ > '${file}'; exec sleep ${seconds}`),
  readsFifo: ({ path }) => {
    // A writer that opens and closes must not be its end.
    const file = openSync(path, 'r+')
    return readSync(file, Buffer.alloc(16))
  },
  atomicsWait: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  regex: () => /^(a+)+$/.test(`${'a'.repeat(60)}b`),
  dies: ({ signal }) => process.kill(process.pid, signal) && new Promise(() => {}),
  fillsArray: () => new Array(5e6).fill(0).map((i) => ({ i })),
  cutsItselfOff: async () => {
    process.removeAllListeners('disconnect')
    process.disconnect()
    // The channel is closed in the next turn of the loop.
    await new Promise((resolve) => setTimeout(resolve, 1))
    for (;;);
  },
  /** Starts a program that outlasts the test, tells its pid, and does what it is told then. */
  startsProgram: async ({ isDetached, lendsChannel, exitCode }, ctx) => {
    const channel = lendsChannel ? [3] : []
    const { pid } = spawn('sleep', ['300'], { stdio: ['ignore', 'ignore', 'ignore', ...channel], detached: isDetached })
    await ctx.progress(pid)
    ctx.log.info('last words')
    if (exitCode !== undefined) process.exit(exitCode)
    return here
  },
  removesAllListeners: async (_input, ctx) => {
    process.removeAllListeners()
    await ctx.progress('is answered')
    process.removeAllListeners('message')
    return here
  },
  /** No turn of the loop is between the outcome and these. */
  leavesALoop: () => {
    setImmediate(() => {
      for (;;);
    })
    return here
  },
  leavesAnExit: () => {
    setImmediate(() => process.exit(3))
    return here
  },
  limits: () => ({ threads: resourceLimits, flags: process.execArgv }),
  untilToldOrAborted: async (_input, ctx) => {
    await ctx.progress(here)
    await new Promise((resolve) => (ctx.signal.aborted ? resolve() : ctx.signal.addEventListener('abort', resolve)))
  },
  together: async (_input, ctx) => {
    await ctx.progress(here)
    return here
  },
}

const contract = {
  type: 'child.typed',
  queue: 'children',
  retry: () => null,
  timeoutMs: 500,
  maxCrashes: 2,
  keepResultMs: null,
  output: null,
  input: {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) =>
        typeof value.n === 'number' ? { value } : { issues: [{ message: 'expected a number', path: ['n'] }] },
    },
  },
}

export default (input, ctx) => acts[input.act](input, ctx)
