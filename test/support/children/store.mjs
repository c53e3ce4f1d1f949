// What every child process starts with: the built package that its parent tests, the store and namespace it was told of, lines from its parent.
import { createInterface } from 'node:readline'

const dist = process.env.HOLDFAST_DIST ?? new URL('../../../dist', import.meta.url).pathname

export const holdfast = await import(`${dist}/src/index.js`)
const { openBackend } = await import(`${dist}/src/backends/open.js`)
const { connectWith } = await import(`${dist}/src/client.js`)
const { systemClock, systemTimers } = await import(`${dist}/src/clock.js`)
const { systemRandom } = await import(`${dist}/src/random.js`)

const [, , url, namespace, ...rest] = process.argv
export const args = rest

const platform = { clock: systemClock, random: systemRandom, warn: () => {}, openDeadlineMs: 10_000 }
const more = JSON.parse(process.env.HOLDFAST_CHILD_OPTIONS ?? '{}')
export const openRaw = () => openBackend(url, { ...platform, namespace })

/** `onCall` hears of every call to the store before it is made. */
export const connect = async (onCall) => {
  if (onCall === undefined) return holdfast.connect(url, { namespace, ...more })
  const backend = await openRaw()
  const { call } = backend
  backend.call = (type, request) => {
    onCall(type)
    return call.call(backend, type, request)
  }
  return connectWith({ ...platform, timers: systemTimers, backend, options: { namespace, ...more } })
}

export const say = (...words) => process.stdout.write(`${words.join(' ')}\n`)

const heard = new Set()
const waiting = new Map()
const ears = createInterface({ input: process.stdin })
ears.on('line', (line) => {
  heard.add(line)
  waiting.get(line)?.()
})
// Whoever started it is gone.
ears.on('close', () => process.exit())

/** Resolves once the parent has said this line. */
export const told = (line) =>
  new Promise((resolve) => {
    if (heard.has(line)) resolve()
    else waiting.set(line, resolve)
  })
