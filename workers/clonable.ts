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

/** From so many objects on, those seen are remembered: a value may refer to the same parts many times over. */
const FORGOTTEN_MAX = 10_000

class Seen {
  private count = 0
  private readonly objects = new Set<object>()

  /** False: its parts have been looked at. */
  isNew(value: object): boolean {
    this.count += 1
    if (this.count <= FORGOTTEN_MAX) return true
    if (this.objects.has(value)) return false
    this.objects.add(value)
    return true
  }
}

function inspectObject(value: object, depth: number, seen: Seen): string | null {
  if (!seen.isNew(value)) return null
  if (types.isProxy(value) || depth >= DEPTH_MAX) return tryClone(value)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const problem = inspect(value[index], depth + 1, seen)
      if (problem !== null) return `[${index}]${problem}`
    }
    return null
  }
  if (types.isDate(value) || types.isUint8Array(value)) return null
  if (!isPlain(value)) return tryClone(value)
  for (const key of Object.keys(value)) {
    const problem = inspect(Reflect.get(value, key), depth + 1, seen)
    if (problem !== null) return `.${key}${problem}`
  }
  return null
}

function inspect(value: unknown, depth: number, seen: Seen): string | null {
  if (typeof value === 'object') return value === null ? null : inspectObject(value, depth, seen)
  return typeof value === 'function' || typeof value === 'symbol' ? `: a ${typeof value} cannot leave the thread` : null
}

/** Null when `value` may be sent; else the place and what is wrong, with `root` as the name of the whole. */
export function cloneProblem(value: unknown, root: string): string | null {
  try {
    const problem = inspect(value, 0, new Seen())
    return problem === null ? null : `${root}${problem}`
  } catch (error) {
    return `${root}: cannot leave the thread: ${error instanceof Error ? error.message : String(error)}`
  }
}
