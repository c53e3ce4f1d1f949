/**
 * Says whether a value survives the way out of a thread, before it is sent: a failed clone inside piscina would end the
 * thread, and a clone that drops the class of an object would change the value without a word.
 * Pure; called by the handler thread for outputs, progress values and inputs of new jobs.
 */
import { types } from 'node:util'

/** As deep as `src/backends/codec.ts` keeps values; what lies deeper is tried for real. */
const DEPTH_MAX = 64

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function className(value: object): string {
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made === 'function' && made.name !== '' ? made.name : 'an unnamed class'
}

/** Rare values are cloned to find out; whatever comes back as a plain object has lost its class. */
function tryClone(value: object): string | null {
  const clone: unknown = structuredClone(value)
  const isLost =
    typeof clone === 'object' && clone !== null && !Array.isArray(value) && isPlain(clone) && !isPlain(value)
  return isLost ? `: an instance of ${className(value)} would lose its class on the way out of the thread` : null
}

function inspectObject(value: object, depth: number): string | null {
  if (types.isProxy(value) || depth >= DEPTH_MAX) return tryClone(value)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const problem = inspect(value[index], depth + 1)
      if (problem !== null) return `[${index}]${problem}`
    }
    return null
  }
  if (types.isDate(value) || types.isUint8Array(value)) return null
  if (!isPlain(value)) return tryClone(value)
  for (const key of Object.keys(value)) {
    const problem = inspect(Reflect.get(value, key), depth + 1)
    if (problem !== null) return `.${key}${problem}`
  }
  return null
}

function inspect(value: unknown, depth: number): string | null {
  if (typeof value === 'object') return value === null ? null : inspectObject(value, depth)
  return typeof value === 'function' || typeof value === 'symbol' ? `: a ${typeof value} cannot leave the thread` : null
}

/** Null when `value` may be sent; else the place and what is wrong, with `root` as the name of the whole. */
export function cloneProblem(value: unknown, root: string): string | null {
  try {
    const problem = inspect(value, 0)
    return problem === null ? null : `${root}${problem}`
  } catch (error) {
    return `${root}: cannot leave the thread: ${error instanceof Error ? error.message : String(error)}`
  }
}
