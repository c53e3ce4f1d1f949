/**
 * A column of values as the text of a PostgreSQL array. The driver's own way quotes and searches every element and takes about twice the
 * time for the columns of a batch (2026-11-30).
 */

/** Text needs its quotes and backslashes escaped. */
const SPECIAL = /["\\]/g
/** Of the escapes of JSON, the array syntax has only those of quote and backslash. */
const JSON_ESCAPE = /(?:^|[^\\])(?:\\\\)*\\[^"\\]/

/** https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
export function arrayLiteral(values: readonly unknown[]): string {
  if (values.every(isJson)) {
    const json = JSON.stringify(values)
    if (!json.includes('\\') || !JSON_ESCAPE.test(json)) return `{${json.slice(1, -1)}}`
  }
  return `{${values.map(item).join(',')}}`
}

/** Means the same in JSON; a word for nothing has no case in an array. */
function isJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'string' || typeof value === 'boolean' || value === null || value === undefined
}

function item(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return `"${String(value).replace(SPECIAL, '\\$&')}"`
}
