/**
 * A thread's line to the main thread by itself: aborts that overtake their task, which a whole pool meets only by chance.
 */
import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MainLink } from '#dist/workers/main-link.js'

let channel: MessageChannel
let link: MainLink

beforeEach(() => {
  channel = new MessageChannel()
  link = new MainLink(channel.port1)
})

afterEach(() => {
  channel.port1.close()
  channel.port2.close()
})

/** Answers the call of a scope, so that everything posted before has been received once this resolves. */
async function received(): Promise<void> {
  const scope = link.begin(0, null)
  let fence = 0
  const answer = link.call(scope, (call) => {
    fence = call
    return { type: 'progress', task: 0, call, value: null }
  })
  channel.port2.postMessage({ type: 'resolve', call: fence, value: null })
  channel.port1.ref()
  await answer
  link.end(scope)
}

it('keeps an abort that comes before its task, for that task alone', async () => {
  channel.port2.postMessage({ type: 'abort', task: 5, reason: { code: 'TIMEOUT', message: 'too long' } })
  await received()
  expect(link.begin(4, null).signal.aborted).toBe(false)
  const { signal } = link.begin(5, null)
  expect(signal.aborted).toBe(true)
  expect(signal.reason).toMatchObject({ name: 'HoldfastError', code: 'TIMEOUT', message: 'too long' })
})

it('forgets such an abort when told to', async () => {
  channel.port2.postMessage({ type: 'abort', task: 5, reason: { code: 'TIMEOUT', message: 'too long' } })
  channel.port2.postMessage({ type: 'forget', task: 5 })
  await received()
  expect(link.begin(5, null).signal.aborted).toBe(false)
})
