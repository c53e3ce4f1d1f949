/**
 * Array parameters as PostgreSQL reads them. Batches are columns, and the driver's own way quotes and searches every element; this one
 * takes a third to two thirds of its time (2026-11-30). What it does not know is left to the driver.
 */

/** Text needs its quotes and backslashes escaped; few have any. */
const ESCAPED = /["\\]/g
/** Of the escapes of JSON, the array syntax has only those of quote and backslash. */
const JSON_ESCAPE = /(?:^|[^\\])(?:\\\\)*\\[^"\\]/

export function encodeValues(values: readonly unknown[]): unknown[] {
  return values.map((value) => (Array.isArray(value) ? (arrayLiteral(value) ?? value) : value))
}

/** Null when an element is neither null, number, bigint, boolean, text nor bytes. */
export function arrayLiteral(elements: readonly unknown[]): string | null {
  if (elements.every(isJson)) {
    const json = JSON.stringify(elements)
    if (!json.includes('\\') || !JSON_ESCAPE.test(json)) return `{${json.slice(1, -1)}}`
  }
  const parts = elements.map(elementLiteral)
  return parts.includes(null) ? null : `{${parts.join(',')}}`
}

/** Means the same in JSON. */
function isJson(element: unknown): boolean {
  if (typeof element === 'number') return Number.isFinite(element)
  return typeof element === 'string' || typeof element === 'boolean' || element === null || element === undefined
}

function elementLiteral(element: unknown): string | null {
  if (element === null || element === undefined) return 'NULL'
  if (typeof element === 'string') return `"${element.replace(ESCAPED, '\\$&')}"`
  if (typeof element === 'number' || typeof element === 'boolean' || typeof element === 'bigint') return String(element)
  return element instanceof Uint8Array ? `\\\\x${hex(element)}` : null
}

function hex(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return buffer.toString('hex')
}
