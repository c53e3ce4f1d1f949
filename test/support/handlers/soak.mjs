// A thread handler of a long run: does what its input says, the worst included.
const acts = {
  echo: ({ n }) => n,
  throws: () => {
    throw new Error('as it was told')
  },
  exits: () => process.exit(3),
  loops: () => {
    for (;;);
  },
  reports: async ({ n }, ctx) => {
    for (let step = 0; step < 5; step += 1) await ctx.progress({ n, step })
    ctx.log.debug({ n }, 'reported')
    return n
  },
}

export default async (input, ctx) => await acts[input.act](input, ctx)
