/** The channel of a namespace and what is said on it: marks of lanes, or nothing for some lane. Pure. */
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

/** What was said: `probe` with its nonce, that something was cancelled, or the marks of lanes; null for some lane. */
export type Said =
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'probe'; readonly nonce: string }
  | { readonly kind: 'ready'; readonly marks: readonly string[] | null }

/** Anybody may say anything on a channel; what is not understood is a hint about some lane. */
export function saidBy(payload: string): Said {
  if (payload.startsWith(PROBE)) return { kind: 'probe', nonce: payload.slice(PROBE.length) }
  if (payload === CANCELLED) return { kind: 'cancelled' }
  const marks = payload.split(',')
  return { kind: 'ready', marks: marks.every((mark) => mark.length === MARK_CHARS) ? marks : null }
}
