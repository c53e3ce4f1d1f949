// What the scenarios share: a client, payloads of a size, and the proof that every job was done.
import { connect, defineJob } from '../holdfast.mjs'

export const noop = defineJob('noop')

export function open({ url, keepCompleted }) {
  return connect(url, { keepCompleted })
}

/** An input whose JSON is `bytes` long. */
export function inputOf(bytes, index) {
  const empty = JSON.stringify({ index, pad: '' }).length
  return { index, pad: 'x'.repeat(Math.max(0, bytes - empty)) }
}

export function inputs(from, count, payloadBytes) {
  return Array.from({ length: count }, (_, index) => inputOf(payloadBytes, from + index))
}

export async function fill(hf, count, payloadBytes, job = noop) {
  const batch = 5_000
  for (let from = 0; from < count; from += batch) {
    const size = Math.min(batch, count - from)
    await hf.enqueueMany(inputs(from, size, payloadBytes).map((input) => ({ job, input })))
  }
}

export function prove(what, done, expected) {
  if (done !== expected) throw new Error(`${what}: ${done} of ${expected} jobs were done`)
}

/** Milliseconds of a clock that all processes of a machine share. */
export const machineTime = () => Number(process.hrtime.bigint()) / 1e6

export const perSecond = (count, ms) => (count / ms) * 1_000

/** Runs `body` and answers what a job cost this process and the server: CPU time in microseconds and what else the server watches. */
export async function measured({ server, jobs }, body) {
  const costs = await server?.watch()
  const before = process.cpuUsage()
  await body()
  const { user, system } = process.cpuUsage(before)
  return { nodeCpu: (user + system) / jobs, ...(await costs?.(jobs)) }
}

/** Jobs a second of `body`, and what a job cost. */
export async function timed(options, body) {
  let elapsed = 0
  const extra = await measured(options, async () => {
    const startedAt = performance.now()
    await body()
    elapsed = performance.now() - startedAt
  })
  return { value: perSecond(options.jobs, elapsed), extra }
}

/** The figures of `measured`; which of them there are depends on the store. */
export const costs = {
  nodeCpu: { name: 'µs of Node CPU/job', higherIsBetter: false },
  serverCpu: { name: 'µs of server CPU/job', higherIsBetter: false },
  walBytes: { name: 'bytes of write-ahead log/job', higherIsBetter: false },
  slowScripts: { name: 'scripts over 5 ms a run' },
}
