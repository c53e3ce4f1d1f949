// What the scenarios share: a client, payloads of a size, and the proof that every job was done.
import { connect, defineJob } from 'holdfast'

export const noop = defineJob('noop')

export function open({ url, keepCompleted }) {
  return connect(url, { keepCompleted })
}

/** An input whose JSON is `bytes` long. */
export function inputOf(bytes, index) {
  const empty = JSON.stringify({ index, pad: '' }).length
  return { index, pad: 'x'.repeat(Math.max(0, bytes - empty)) }
}

export async function fill(hf, count, payloadBytes, job = noop) {
  const batch = 5_000
  for (let from = 0; from < count; from += batch) {
    const size = Math.min(batch, count - from)
    await hf.enqueueMany(
      Array.from({ length: size }, (_, index) => ({ job, input: inputOf(payloadBytes, from + index) })),
    )
  }
}

export function prove(what, done, expected) {
  if (done !== expected) throw new Error(`${what}: ${done} of ${expected} jobs were done`)
}

export const perSecond = (count, ms) => (count / ms) * 1_000
