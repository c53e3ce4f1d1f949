// Our side as the scenarios with several processes drive it: the same calls as a peer offers.
import { createRequire } from 'node:module'
import { handle } from '../holdfast.mjs'
import { open as connectTo, noop } from '../scenario/shared.mjs'

export const name = 'holdfast'

/** The driver that our build loads, which is another copy than that of the peers. */
export const driver = () => createRequire(new URL('../../dist/src/index.js', import.meta.url))('pg')

/** The same store whose enqueues wake nobody. */
export function withoutNotifications(url) {
  const changed = new URL(url)
  changed.searchParams.set('notify', 'off')
  return changed.href
}

export async function open(options) {
  const hf = await connectTo(options)
  return {
    add: (input) => hf.enqueue(noop, input),
    addMany: (inputs) => hf.enqueueMany(inputs.map((input) => ({ job: noop, input }))),
    waiting: async () => (await hf.stats()).counts.queued,
    async work(concurrency, handler, lanes = ['default']) {
      let worker
      return {
        async start() {
          worker = await hf.worker({ handlers: [handle(noop, async (input) => handler(input))], lanes, concurrency })
        },
        stop: () => worker?.stop(),
      }
    },
    close: () => hf.close(),
  }
}
