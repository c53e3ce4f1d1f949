/** Narrows what a script answered. A shape that no script gives is an internal error, never a crash further on. */
import { HoldfastError } from '../../errors.ts'
import type { RedisReply } from './servers.ts'

function unexpected(what: string, reply: RedisReply | undefined): HoldfastError {
  const got = reply === undefined ? 'nothing' : Array.isArray(reply) ? 'a list' : typeof reply
  return new HoldfastError('INTERNAL', `a script answered ${got} where ${what} belongs`, {
    details: { outcome: 'unknown' },
  })
}

export function listOf(reply: RedisReply | undefined): readonly RedisReply[] {
  if (Array.isArray(reply)) return reply as readonly RedisReply[]
  throw unexpected('a list', reply)
}

export function bufferOf(reply: RedisReply | undefined): Buffer {
  if (Buffer.isBuffer(reply)) return reply
  throw unexpected('a text', reply)
}

export function textOf(reply: RedisReply | undefined): string {
  return bufferOf(reply).toString('utf8')
}

/** Text, or null for nil. */
export function optionalText(reply: RedisReply | undefined): string | null {
  return reply === null || reply === undefined ? null : textOf(reply)
}

/** Integers come as such or as digits. */
export function numberOf(reply: RedisReply | undefined): number {
  if (typeof reply === 'number') return reply
  const value = Number(textOf(reply))
  if (Number.isNaN(value)) throw unexpected('a number', reply)
  return value
}

/** A number, or null for nil and for empty text. */
export function optionalNumber(reply: RedisReply | undefined): number | null {
  if (reply === null || reply === undefined) return null
  if (Buffer.isBuffer(reply) && reply.length === 0) return null
  return numberOf(reply)
}

/** A verdict or outcome by its letter. */
export function meaningOf<T>(meanings: Readonly<Record<string, T>>, letter: string | undefined): T {
  const meaning = letter === undefined ? undefined : meanings[letter]
  if (meaning === undefined)
    throw new HoldfastError('INTERNAL', `a script answered the unknown letter '${String(letter)}'`)
  return meaning
}
