/**
 * Seeded randomness for tests: xoshiro128** (https://prng.di.unimi.it/) whose state is filled by splitmix32 from a seed
 * of up to 53 bits. The same seed gives the same numbers on every machine. Forks are independent streams, so that one
 * part of a scenario drawing more numbers does not change what the others draw.
 */
import type { Random } from '#dist/src/random.js'

const rotate = (value: number, by: number): number => (value << by) | (value >>> (32 - by))

function splitmix32(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
}

export class SeededRandom implements Random {
  private a: number
  private b: number
  private c: number
  private d: number

  constructor(seed: number) {
    const low = splitmix32(seed >>> 0)
    const high = splitmix32(Math.floor(seed / 2 ** 32) ^ 0x5bf03635)
    this.a = low() ^ high()
    this.b = low() ^ high()
    this.c = low() ^ high()
    // An all-zero state would only ever give zeros.
    this.d = low() ^ high() || 1
  }

  /** 32 random bits as an unsigned number. */
  bits(): number {
    const result = Math.imul(rotate(Math.imul(this.b, 5), 7), 9) >>> 0
    const shifted = this.b << 9
    this.c ^= this.a
    this.d ^= this.b
    this.b ^= this.c
    this.a ^= this.d
    this.c ^= shifted
    this.d = rotate(this.d, 11)
    return result
  }

  next(): number {
    return (this.bits() >>> 5) / 2 ** 27
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.bits() >>> 24)
  }

  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.integer(0, items.length - 1)]
    if (item === undefined) throw new Error('pick from an empty list')
    return item
  }

  fork(): SeededRandom {
    return new SeededRandom(this.bits() * 2 ** 21 + (this.bits() >>> 11))
  }
}
