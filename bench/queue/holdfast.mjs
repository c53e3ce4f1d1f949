// Our side as the scenarios with several processes drive it: the same calls as a peer offers.
import { handle } from '../holdfast.mjs'
import { open as connectTo, noop } from '../scenario/shared.mjs'

export const name = 'holdfast'

export async function open(options) {
  const hf = await connectTo(options)
  return {
    add: (input) => hf.enqueue(noop, input),
    addMany: (inputs) => hf.enqueueMany(inputs.map((input) => ({ job: noop, input }))),
    waiting: async () => (await hf.stats()).counts.queued,
    async work(concurrency, handler) {
      let worker
      return {
        async start() {
          worker = await hf.worker({ handlers: [handle(noop, async (input) => handler(input))], concurrency })
        },
        stop: () => worker?.stop(),
      }
    },
    close: () => hf.close(),
  }
}
