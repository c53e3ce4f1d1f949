// A handler module that does what its input says: echo, end its thread, end it until an attempt, or compute without end.
const acts = {
  echo: ({ value }) => value,
  exit: () => process.exit(1),
  exitUntil: ({ attempt }, ctx) => (ctx.attempt < attempt ? process.exit(1) : `attempt ${ctx.attempt}`),
  loopUntil: ({ attempt }, ctx) => {
    while (ctx.attempt < attempt);
    return `attempt ${ctx.attempt}`
  },
}

export default (input, ctx) => acts[input.act](input, ctx)
