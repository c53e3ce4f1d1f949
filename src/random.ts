/**
 * Randomness as the engine sees it, handed in from outside so that a seed reproduces a run, and the ids made from it.
 * Only this file touches `node:crypto`.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** `count` random bytes. */
  bytes(count: number): Uint8Array
}

const POOL_BYTES = 4096

function createSystemRandom(): Random {
  let pool = randomBytes(POOL_BYTES)
  let used = 0
  const bytes = (count: number): Uint8Array => {
    if (count > POOL_BYTES) return randomBytes(count)
    if (used + count > POOL_BYTES) {
      pool = randomBytes(POOL_BYTES)
      used = 0
    }
    used += count
    return pool.subarray(used - count, used)
  }
  const next = (): number => {
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes(6)
    return (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) / 2 ** 48
  }
  return { next, bytes }
}

export const systemRandom: Random = createSystemRandom()

/** Crockford's base 32, as the ULID specification uses it: https://github.com/ulid/spec */
const CROCKFORD = Buffer.from('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 'latin1')
const TIME_CHARS = 10
const RANDOM_CHARS = 16

/** 96 random bits as 24 hexadecimal characters: the part of a lease token that no other grant shares. */
export function nonce(random: Random): string {
  return Buffer.from(random.bytes(12)).toString('hex')
}

/**
 * Makes ULIDs that sort in the order they were made, also within one millisecond and when the clock goes back:
 * the time part never falls, and within one time part the random part counts up by one.
 */
export function createUlidFactory(clock: Clock, random: Random): () => string {
  const digits = new Uint8Array(RANDOM_CHARS)
  // One flat string is cut from this buffer: joining characters would leave a rope of 26 pieces behind in every id.
  const text = Buffer.alloc(TIME_CHARS + RANDOM_CHARS)
  let lastMs = -1

  const refill = (timeMs: number): void => {
    lastMs = timeMs
    for (let index = TIME_CHARS - 1, rest = timeMs; index >= 0; index -= 1, rest = Math.floor(rest / 32)) {
      text[index] = CROCKFORD[rest % 32] ?? 0
    }
    const bytes = random.bytes(RANDOM_CHARS)
    // A first digit below 16 leaves 2^79 increments before the random part can overflow.
    for (let index = 0; index < RANDOM_CHARS; index += 1) digits[index] = (bytes[index] ?? 0) & (index === 0 ? 15 : 31)
  }

  const increment = (): void => {
    for (let index = RANDOM_CHARS - 1; index >= 0; index -= 1) {
      const digit = digits[index] ?? 0
      if (digit < 31) {
        digits[index] = digit + 1
        return
      }
      digits[index] = 0
    }
  }

  return () => {
    const timeMs = Math.max(0, Math.floor(clock.now()))
    if (timeMs > lastMs) refill(timeMs)
    else increment()
    for (let index = 0; index < RANDOM_CHARS; index += 1) text[TIME_CHARS + index] = CROCKFORD[digits[index] ?? 0] ?? 0
    return text.toString('latin1')
  }
}
