/**
 * Encodes the values of users so that every store gives the same value back.
 * Pure JSON becomes JSON text; a value with more in it (Date, bigint, bytes, -0, NaN, undefined, lone surrogates beside those)
 * becomes MessagePack with extension types of our own; `undefined` alone becomes empty text. What cannot be kept is refused
 * by the name of its path before anything is written.
 */
import { decode, Encoder, ExtensionCodec } from '@msgpack/msgpack'
import { LIMITS } from '../config.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { Payload } from '../job.ts'

export const VALUE_DEPTH_MAX = 64
export const OBJECT_KEYS_MAX = 10_000

/** A leaf that MessagePack itself would change; packed as an extension of ours. */
class Leaf {
  readonly type: number
  readonly bytes: Uint8Array

  constructor(type: number, bytes: Uint8Array) {
    this.type = type
    this.bytes = bytes
  }
}

const EXT = { undefined: 1, date: 2, bigint: 3, bytes: 4, buffer: 5, number: 6, utf16: 7 } as const

const ascii = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const asciiText = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

const extensions = new ExtensionCodec()
const register = (type: number, read: (bytes: Uint8Array) => unknown): void => {
  extensions.register({
    type,
    encode: (value) => (value instanceof Leaf && value.type === type ? value.bytes : null),
    decode: read,
  })
}
register(EXT.undefined, () => undefined)
register(EXT.date, (bytes) => new Date(Number(asciiText(bytes))))
register(EXT.bigint, (bytes) => BigInt(asciiText(bytes)))
register(EXT.bytes, (bytes) => Uint8Array.from(bytes))
register(EXT.buffer, (bytes) => Buffer.from(bytes))
register(EXT.number, (bytes) => {
  const text = asciiText(bytes)
  return text === '-0' ? -0 : Number(text)
})
register(EXT.utf16, (bytes) => Buffer.from(bytes).toString('utf16le'))

const encoder = new Encoder({ extensionCodec: extensions, maxDepth: VALUE_DEPTH_MAX + 4 })

function refuse(path: string, problem: string): never {
  throw new HoldfastError('INVALID_PAYLOAD', `${path}: ${problem}`, { details: { path } })
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/
const join = (path: string, key: string): string =>
  IDENTIFIER.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * Looks through one value: `isJson` afterwards says whether JSON keeps it; what nothing keeps is refused. Every value takes at
 * least a byte when encoded, so looking at more than the limit allows ends the walk: an object that refers to the same parts
 * many times over would otherwise be walked for ever.
 */
class Inspection {
  isJson = true
  private left: number
  private readonly root: string
  private readonly limitBytes: number

  constructor(root: string, limitBytes: number) {
    this.root = root
    this.limitBytes = limitBytes
    this.left = limitBytes
  }

  look(value: unknown, path: string, depth: number): void {
    this.spend(1)
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return
      case 'number':
        if (!Number.isFinite(value) || Object.is(value, -0)) this.isJson = false
        return
      case 'undefined':
      case 'bigint':
        this.isJson = false
        return
      case 'object':
        if (value !== null) this.lookInto(value, path, depth)
        return
      default:
        refuse(path, `a ${typeof value} cannot be kept`)
    }
  }

  private spend(count: number): void {
    this.left -= count
    if (this.left >= 0) return
    const { root, limitBytes } = this
    throw new HoldfastError('PAYLOAD_TOO_LARGE', `${root}: more than ${limitBytes} bytes encoded, which is the limit`, {
      details: { field: root, limit: limitBytes },
    })
  }

  private lookInto(value: object, path: string, depth: number): void {
    if (depth >= VALUE_DEPTH_MAX) refuse(path, `nested deeper than ${VALUE_DEPTH_MAX} levels, or refers to itself`)
    if (Array.isArray(value)) this.lookIntoArray(value, path, depth)
    else if (value instanceof Date) {
      if (Number.isNaN(value.getTime())) refuse(path, 'an invalid Date cannot be kept')
      this.isJson = false
    } else if (value instanceof Uint8Array) {
      if (value.length === 0 && isGone(value)) refuse(path, 'a Uint8Array whose buffer was transferred cannot be kept')
      this.isJson = false
    } else if (isPlain(value)) this.lookIntoPlain(value, path, depth)
    else
      refuse(
        path,
        `an instance of ${nameOf(value)} cannot be kept; give plain objects, arrays, Date, bigint or Uint8Array`,
      )
  }

  private lookIntoArray(value: readonly unknown[], path: string, depth: number): void {
    this.spend(value.length)
    for (let index = 0; index < value.length; index += 1) {
      const item = value[index]
      if (item === undefined && !(index in value)) refuse(`${path}[${index}]`, 'a hole in an array cannot be kept')
      // Numbers and strings are the bulk of large arrays; asking in place spares a path per item.
      if (typeof item === 'string' || (typeof item === 'number' && item !== 0 && Number.isFinite(item))) continue
      this.look(item, `${path}[${index}]`, depth + 1)
    }
  }

  private lookIntoPlain(value: object, path: string, depth: number): void {
    const keys = Object.keys(value)
    if (keys.length > OBJECT_KEYS_MAX) refuse(path, `more than ${OBJECT_KEYS_MAX} keys`)
    this.spend(keys.length)
    for (const key of keys) {
      const item: unknown = Reflect.get(value, key)
      if (key === '__proto__') refuse(path, 'the key __proto__ cannot be kept')
      if (typeof item === 'string' || typeof item === 'boolean') continue
      if (typeof item === 'number' && item !== 0 && Number.isFinite(item)) continue
      this.look(item, join(path, key), depth + 1)
    }
    if (Object.getOwnPropertySymbols(value).length > 0) refuse(path, 'symbol keys cannot be kept')
  }
}

/** Every method of an array of bytes refuses one that has lost its buffer. */
function isGone(bytes: Uint8Array): boolean {
  try {
    Uint8Array.prototype.keys.call(bytes)
    return false
  } catch {
    return true
  }
}

function nameOf(value: object): string {
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made === 'function' && made.name !== '' ? made.name : 'an unnamed class'
}

/** The same value with every leaf that MessagePack would change wrapped. */
function wrap(value: unknown): unknown {
  if (value === undefined) return new Leaf(EXT.undefined, new Uint8Array(0))
  if (typeof value === 'number')
    return Number.isFinite(value) && !Object.is(value, -0)
      ? value
      : new Leaf(EXT.number, ascii(Object.is(value, -0) ? '-0' : String(value)))
  if (typeof value === 'bigint') return new Leaf(EXT.bigint, ascii(String(value)))
  if (typeof value === 'string')
    return value.isWellFormed() ? value : new Leaf(EXT.utf16, Buffer.from(value, 'utf16le'))
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(wrap)
  if (value instanceof Date) return new Leaf(EXT.date, ascii(String(value.getTime())))
  if (Buffer.isBuffer(value)) return new Leaf(EXT.buffer, value)
  if (value instanceof Uint8Array) return new Leaf(EXT.bytes, value)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [wrapKey(key), wrap(item)]))
}

function wrapKey(key: string): string {
  if (!key.isWellFormed())
    throw new HoldfastError(
      'INVALID_PAYLOAD',
      'a key with a lone surrogate cannot be kept beside values that JSON lacks',
    )
  return key
}

function sizeOf(payload: Payload): number {
  return typeof payload === 'string' ? Buffer.byteLength(payload) : payload.byteLength
}

function encode(value: unknown, root: string, limitBytes: number): Payload {
  try {
    const inspection = new Inspection(root, limitBytes)
    inspection.look(value, root, 0)
    return inspection.isJson ? JSON.stringify(value) : encoder.encode(wrap(value)).slice()
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause
    // A getter, a `toJSON` or a proxy threw.
    const problem = `cannot be read: ${toFailure(cause).message}`
    throw new HoldfastError('INVALID_PAYLOAD', `${root}: ${problem}`, { details: { path: root }, cause })
  }
}

/**
 * Encodes `value`, named `root` in errors. Throws INVALID_PAYLOAD with `details.path`, or PAYLOAD_TOO_LARGE with
 * `details.bytes` and `details.limit`.
 */
export function encodeValue(value: unknown, root: string, limitBytes: number = LIMITS.payloadBytes): Payload {
  if (value === undefined) return ''
  const payload = encode(value, root, limitBytes)
  const isSurelySmall = typeof payload === 'string' && payload.length * 3 <= limitBytes
  const bytes = isSurelySmall ? 0 : sizeOf(payload)
  if (bytes > limitBytes) {
    throw new HoldfastError('PAYLOAD_TOO_LARGE', `${root}: ${bytes} bytes encoded; the limit is ${limitBytes}`, {
      details: { field: root, bytes, limit: limitBytes },
    })
  }
  return payload
}

/** Gives back the value that was encoded. Throws STORE_CORRUPT when the stored value is damaged. */
export function decodeValue(payload: Payload): unknown {
  if (payload === '') return undefined
  try {
    return typeof payload === 'string' ? JSON.parse(payload) : decode(payload, { extensionCodec: extensions })
  } catch (cause) {
    throw new HoldfastError('STORE_CORRUPT', 'a stored value cannot be decoded', { cause })
  }
}
