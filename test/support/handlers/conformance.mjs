// A handler module that does what its input says: echo, end its thread, end it until an attempt, talk, or compute without end.
import { execSync } from 'node:child_process'
import { hostileLogs } from '../hostile-logs.mjs'

const acts = {
  echo: ({ value }) => value,
  exit: () => process.exit(1),
  exitUntil: ({ attempt }, ctx) => (ctx.attempt < attempt ? process.exit(1) : `attempt ${ctx.attempt}`),
  untilAborted: async (_input, ctx) => {
    await ctx.progress('begun')
    await new Promise((resolve) => (ctx.signal.aborted ? resolve() : ctx.signal.addEventListener('abort', resolve)))
  },
  loopBeginning: async (_input, ctx) => {
    await ctx.progress('begun')
    for (;;);
  },
  segfault: () => process.kill(process.pid, 'SIGSEGV') && new Promise(() => {}),
  sleep: ({ file, seconds }) =>
    execSync(`echo $$ > '${file}.new' && mv '${file}.new' '${file}'; exec sleep ${seconds}`),
  spin: ({ ms }) => {
    const end = performance.now() + ms
    while (performance.now() < end);
    return 'spun'
  },
  fillHeap: () => {
    const kept = []
    for (;;) kept.push({ text: `${kept.length}-${'x'.repeat(10)}`, list: [1, 2, 3, kept.length] })
  },
  talks: ({ value: n, lines }, ctx) => {
    for (let line = 0; line < lines; line += 1) ctx.log.info(`${n}: ${line}`)
    for (let done = 0; done < 1000; done += 1) ctx.progress({ n, done })
  },
  saysOddThings: (_input, ctx) => {
    const { seen, values } = hostileLogs()
    for (const said of values) ctx.log.error(...said)
    return seen.ran
  },
  lastWords: (_input, ctx) => {
    ctx.log.fatal('last words')
    process.exit(3)
  },
  loopUntil: ({ attempt }, ctx) => {
    while (ctx.attempt < attempt);
    return `attempt ${ctx.attempt}`
  },
}

export default (input, ctx) => acts[input.act](input, ctx)
