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

/** Runs `body` and answers the CPU time a job cost this process and the server, in microseconds, and the server's slow scripts. */
export async function measured({ server, jobs }, body) {
  await server?.forgetSlowScripts()
  const serverBefore = await server?.cpuMicroseconds()
  const before = process.cpuUsage()
  await body()
  const { user, system } = process.cpuUsage(before)
  const extra = { nodeCpu: (user + system) / jobs }
  if (server === undefined) return extra
  extra.serverCpu = ((await server.cpuMicroseconds()) - serverBefore) / jobs
  extra.slowScripts = await server.slowScripts()
  return extra
}
