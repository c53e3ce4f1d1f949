// A handler module that does what its input says: echo, end its thread, end it until an attempt, talk, or compute without end.
const acts = {
  echo: ({ value }) => value,
  exit: () => process.exit(1),
  exitUntil: ({ attempt }, ctx) => (ctx.attempt < attempt ? process.exit(1) : `attempt ${ctx.attempt}`),
  talks: ({ value: n, lines }, ctx) => {
    for (let line = 0; line < lines; line += 1) ctx.log.info(`${n}: ${line}`)
    for (let done = 0; done < 1000; done += 1) ctx.progress({ n, done })
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
