/**
 * What the driver makes of the columns of a reply: numbers, booleans, bytes and text, the same on every connection, whatever parsers
 * the application has set for itself. JSON stays text, which the codec reads.
 */
import { type CustomTypesConfig, types } from 'pg'

const BYTEA = 17
/** int8[], which the driver gives as text. */
const INT8_ARRAY = 1016

const asText = (text: string): string => text
const byDriver = types.getTypeParser as (oid: number) => (text: string) => unknown
const numbers = (value: unknown): unknown =>
  Array.isArray(value) ? value.map((each) => (each === null ? null : Number(each))) : value

/** By the OID of the type; what is not here stays text. A float8 holds microseconds exactly for the next two centuries. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === 't',
  [BYTEA]: (text) => (text.startsWith('\\x') ? Buffer.from(text.slice(2), 'hex') : byDriver(BYTEA)(text)),
  20: Number,
  21: Number,
  23: Number,
  26: Number,
  700: Number,
  701: Number,
  // int4[] and text[]
  1007: (text) => byDriver(1007)(text),
  1009: (text) => byDriver(1009)(text),
  [INT8_ARRAY]: (text) => numbers(byDriver(INT8_ARRAY)(text)),
}

/** Given with every query. */
export const COLUMN_TYPES: CustomTypesConfig = {
  getTypeParser: (oid: number): never => (PARSERS[oid] ?? asText) as never,
}
