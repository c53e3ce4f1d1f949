/**
 * The channel of a namespace and what is said on it: marks of lanes that have something ready, or nothing for some lane; and, behind
 * signs, marks of lanes in which somebody waits for ends, or in which jobs have ended. Pure.
 */
import { createHash } from 'node:crypto'

const MARK_CHARS = 8
/** A payload of 8,000 bytes fails the whole transaction; this many marks are far below. */
const MARKS_MAX = 100
const PROBE = '?'
/** Says that some running job may have been cancelled. */
export const CANCELLED = '!'

/** PostgreSQL cuts names of more than 63 bytes without a word, so whatever the schema and the namespace are called is hashed. */
export function channelOf(schema: string, namespace: string): string {
  return `holdfast_${hash(`${schema}\0${namespace}`, 32)}`
}

export const markOf = (lane: string): string => hash(lane, MARK_CHARS)

function hash(text: string, chars: number): string {
  return createHash('sha1').update(text).digest('hex').slice(0, chars)
}

/** Says that jobs may be ready in these lanes; null stands for some lane. */
export function payloadOf(lanes: ReadonlySet<string | null>): string {
  const marks = [...lanes].flatMap((lane) => (lane === null ? [] : [markOf(lane)]))
  return marks.length < lanes.size || marks.length > MARKS_MAX ? '' : marks.join(',')
}

/** Says nothing but that it was heard. */
export const probeOf = (nonce: string): string => PROBE + nonce

/** Signs of the words about ends. */
export const WAITING = '+'
export const ENDED = '-'

/** Words are marks behind their signs. */
export function endsPayloadOf(words: ReadonlySet<string | null>): string {
  const all = [...words].flatMap((word) => word ?? [])
  const parts = [WAITING, ENDED].flatMap((sign) => {
    const marks = all.filter((word) => word.startsWith(sign)).map((word) => word.slice(sign.length))
    return marks.length === 0 ? [] : [sign + (marks.length > MARKS_MAX ? '' : marks.join(','))]
  })
  return parts.join(';')
}

/** null: of some lane. */
export type Marks = readonly string[] | null

/** What was said: `probe` with its nonce, that something was cancelled, ends, or the marks of lanes; null for some lane. */
export type Said =
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'probe'; readonly nonce: string }
  | { readonly kind: 'ready'; readonly marks: Marks }
  | { readonly kind: 'ends'; readonly waiting: Marks; readonly ended: Marks }

/** Anybody may say anything on a channel; what is not understood is a hint about some lane. */
export function saidBy(payload: string): Said {
  if (payload.startsWith(PROBE)) return { kind: 'probe', nonce: payload.slice(PROBE.length) }
  if (payload === CANCELLED) return { kind: 'cancelled' }
  if (ENDS.test(payload)) {
    const parts = payload.split(';')
    return { kind: 'ends', waiting: behind(WAITING, parts), ended: behind(ENDED, parts) }
  }
  return { kind: 'ready', marks: marksIn(payload) }
}

const ENDS = /^[+-][0-9a-f,]*(?:;-[0-9a-f,]*)?$/

function marksIn(text: string): Marks {
  const marks = text.split(',')
  return marks.every((mark) => mark.length === MARK_CHARS) ? marks : null
}

function behind(sign: string, parts: readonly string[]): Marks {
  const part = parts.find((each) => each.startsWith(sign))
  return part === undefined ? [] : marksIn(part.slice(sign.length))
}
