/**
 * Text that is safe to show: nothing stored can move the cursor, recolour the terminal, reorder a line or forge one, and no
 * password of a store URL appears anywhere. Pure; everything the command line writes passes through here.
 */
import { stripVTControlCharacters } from 'node:util'

/** C0, DEL and C1; bidi marks, embeddings and isolates; line separators; byte order mark; lone surrogates. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed here
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu
const BLANK = /[\t\n\r\v\f\u0085\u2028\u2029]+/g

/** One line without anything that a terminal would act on. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(BLANK, ' ').replace(UNSAFE, '')
}

/** What JSON leaves as it is but a terminal may act on, escaped; the value stays the same. */
const UNSAFE_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * JSON of any value that a job can hold: what JSON lacks is told apart by one key, `$bigint`, `$bytes` (base64) or
 * `$number` (`NaN`, `Infinity`, `-Infinity`); dates are ISO strings; `undefined` is left out.
 */
export function toJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(jsonable(value), null, indent) ?? 'null'
  return text.replace(UNSAFE_JSON, escapeUnit)
}

function jsonable(value: unknown): unknown {
  if (typeof value === 'bigint') return { $bigint: String(value) }
  if (typeof value === 'number') return Number.isFinite(value) ? value : { $number: String(value) }
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') }
  if (Array.isArray(value)) return value.map(jsonable)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonable(item)]))
}

const USERINFO = /([a-z][a-z0-9+.-]*:\/\/)[^\s'"/?#]*@/gi
/** In an error about a store URL a password may hold a `/`, so all up to the last `@` goes. */
const USERINFO_WIDE = /([a-z][a-z0-9+.-]*:\/\/)[^\s'"]*@/gi
const SECRET_PARAMETER = /([?&](?:password|pass|pwd|token|secret)=)[^&\s'"]*/gi

/** The same text with the user and password of every URL in it replaced by `***`. */
export function maskUrls(text: string): string {
  return text.replace(USERINFO, '$1***@').replace(SECRET_PARAMETER, '$1***')
}

/** The same for a store URL, or a message about one, whose password may not be encoded. */
export function maskStoreUrl(text: string): string {
  return maskUrls(text.replace(USERINFO_WIDE, '$1***@'))
}

/** Whether the URL holds a password, which other users of the machine can read in the list of processes. */
export function hasPassword(url: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^\s/]*:[^\s]*@/i.test(url) || /[?&](?:password|pass|pwd)=./i.test(url)
}

export function shorten(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** Bytes in decimal units: `1.5 MB`. */
export function showBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 ? String(value) : value.toFixed(value < 9.95 ? 1 : 0)} ${UNITS[unit] ?? ''}`
}

/** A span in the unit that reads best: `12 ms`, `1.5 s`, `3 min`, `2 h`, `4 d`. */
export function showSpan(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 99_950) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 5_970_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`
}

export const showNumber = (value: number): string => value.toLocaleString('en-US')
