/**
 * Makes of a handler's value the copy that is sent: plain objects and arrays with nothing in them that runs, so that each getter is read
 * once and a send cannot fail, which inside piscina would end the thread. What the main thread could not keep is refused here by its
 * place, in the words of `src/backends/codec.ts`. Pure; called for outputs, progress values and inputs of new jobs.
 */
import { types } from 'node:util'
import { HoldfastError } from '../src/errors.ts'
import { toFailure } from '../src/failure.ts'

/** As deep as `src/backends/codec.ts` keeps values. */
const DEPTH_MAX = 64

/** From so many parts on, copies are remembered: a value may refer to the same parts many times over. */
const FORGOTTEN_MAX = 10_000

/** What is wrong, and where. Told from whatever a getter throws, a proxy too, without running code of that. */
class Flaw {
  #place: string
  readonly why: string

  constructor(why: string) {
    this.#place = ''
    this.why = why
  }

  static is(thrown: unknown): thrown is Flaw {
    return typeof thrown === 'object' && thrown !== null && #place in thrown
  }

  get place(): string {
    return this.#place
  }

  /** The flaw seen from one level further out. */
  static in(place: string, thrown: unknown): Flaw {
    const flaw = Flaw.is(thrown) ? thrown : new Flaw(`cannot leave the thread: ${toFailure(thrown).message}`)
    flaw.#place = place + flaw.#place
    return flaw
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

function className(value: object): string {
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made === 'function' && made.name !== '' ? made.name : 'an unnamed class'
}

/** Of a view into a large buffer only its own part is sent. */
function copyBytes(value: Uint8Array): Uint8Array {
  const bytes = readBytes(value)
  // A channel between processes keeps a Buffer a Buffer, as an inline handler does.
  return Buffer.isBuffer(value) ? Buffer.from(bytes.buffer) : bytes
}

function readBytes(value: Uint8Array): Uint8Array {
  try {
    return new Uint8Array(value)
  } catch (error) {
    // Else there is no memory for it.
    throw error instanceof TypeError ? new Flaw('a Uint8Array whose buffer was transferred cannot be kept') : error
  }
}

class Copier {
  private parts = 0
  private copies: Map<object, object> | null = null

  copy(value: unknown, depth: number): unknown {
    if (typeof value === 'object') return value === null ? null : this.copyObject(value, depth)
    if (typeof value === 'function' || typeof value === 'symbol') {
      throw new Flaw(`a ${typeof value} cannot leave the thread`)
    }
    return value
  }

  private copyObject(value: object, depth: number): object {
    if (types.isProxy(value)) throw new Flaw('cannot leave the thread: a Proxy')
    if (depth >= DEPTH_MAX) throw new Flaw(`nested deeper than ${DEPTH_MAX} levels, or refers to itself`)
    if (Array.isArray(value)) return this.copyArray(value, depth)
    if (isPlain(value)) return this.copyPlain(value, depth)
    if (types.isDate(value)) return value
    if (types.isUint8Array(value)) return copyBytes(value)
    throw new Flaw(
      `an instance of ${className(value)} cannot leave the thread; give plain objects, arrays, Date, bigint or Uint8Array`,
    )
  }

  private copyArray(value: readonly unknown[], depth: number): object {
    const known = this.known(value, value.length)
    if (known !== undefined) return known
    const copy: unknown[] = []
    this.remember(value, copy)
    // A getter inside may add to it.
    const { length } = value
    let index = 0
    try {
      for (; index < length; index += 1) {
        const item = value[index]
        // Nothing keeps holes, and the first one ends the walk: there may be four thousand million of them.
        if (item === undefined && !(index in value)) throw new Flaw('a hole in an array cannot be kept')
        copy.push(this.copy(item, depth + 1))
      }
    } catch (error) {
      throw Flaw.in(`[${index}]`, error)
    }
    return copy
  }

  private copyPlain(value: object, depth: number): object {
    const keys = Object.keys(value)
    const known = this.known(value, keys.length)
    if (known !== undefined) return known
    const copy: Record<string, unknown> = {}
    this.remember(value, copy)
    let last = ''
    try {
      for (const key of keys) {
        last = key
        if (key === '__proto__') throw new Flaw('the key __proto__ cannot be kept')
        const item: unknown = Reflect.get(value, key)
        copy[key] = typeof item === 'string' || typeof item === 'number' ? item : this.copy(item, depth + 1)
      }
    } catch (error) {
      throw Flaw.in(`.${last}`, error)
    }
    if (Object.getOwnPropertySymbols(value).length > 0) throw new Flaw('symbol keys cannot be kept')
    return copy
  }

  private known(value: object, parts: number): object | undefined {
    this.parts += 1 + parts
    return this.parts <= FORGOTTEN_MAX ? undefined : this.copies?.get(value)
  }

  private remember(value: object, copy: object): void {
    if (this.parts <= FORGOTTEN_MAX) return
    this.copies ??= new Map()
    this.copies.set(value, copy)
  }
}

/** The copy of `value`, named `root` in errors, that may be sent. Throws INVALID_PAYLOAD with `details.path`. */
export function sendable(value: unknown, root: string): unknown {
  // Most handlers give nothing back, or one word.
  if (value === undefined || typeof value === 'string' || typeof value === 'number') return value
  try {
    return new Copier().copy(value, 0)
  } catch (error) {
    const { place, why } = Flaw.in('', error)
    const path = `${root}${place}`
    throw new HoldfastError('INVALID_PAYLOAD', `${path}: ${why}`, { details: { path } })
  }
}
