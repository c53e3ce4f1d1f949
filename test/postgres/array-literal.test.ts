/** Array parameters mean to the server what they meant here, and columns come back as what they were. */
import fc from 'fast-check'
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { arrayLiteral } from '#dist/src/backends/postgres/array-literal.js'
import { COLUMN_TYPES } from '#dist/src/backends/postgres/decode.js'
import { PostgresServer } from '../support/postgres-server.ts'

let server: PostgresServer
let client: Client
beforeAll(async () => {
  server = await PostgresServer.start()
  client = await server.connect()
})
afterAll(async () => {
  await client.end()
  await server.stop()
})

/** The elements as the server sees them, one a row. */
async function elements(type: string, values: readonly unknown[]): Promise<unknown[]> {
  const query = {
    text: `SELECT each FROM unnest($1::${type}[]) AS each`,
    types: COLUMN_TYPES,
    rowMode: 'array' as const,
  }
  const { rows } = await client.query({ ...query, values: [arrayLiteral(values)] })
  return rows.map(([each]: unknown[]) => each)
}

const TEXT = [
  '',
  'a',
  'NULL',
  'null',
  '"',
  '\\',
  '\\\\n',
  '\n',
  '\\n',
  'a,b',
  '{x}',
  ' a ',
  'é',
  '🙂',
  '\t"\\\r',
  '\u2028',
  '{"a":"b\\n"}',
]

test('text of every kind', async () => {
  expect(await elements('text', [...TEXT, null, undefined])).toEqual([...TEXT, null, null])
  for (const each of TEXT) expect(await elements('text', [each])).toEqual([each])
})

test('any text', async () => {
  const text = fc.string({ unit: 'grapheme' }).filter((each) => !each.includes('\0') && each.isWellFormed())
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(text), { maxLength: 8 }), async (values) => {
      expect(await elements('text', values)).toEqual(values)
    }),
    { numRuns: 200 },
  )
})

test('numbers and truth', async () => {
  expect(await elements('int8', [1, -5, 2 ** 53 - 1, null, 7n])).toEqual([1, -5, 2 ** 53 - 1, null, 7])
  expect(await elements('float8', [1.5, 1e300, NaN, Infinity, 1_733_000_000_123_456])).toEqual([
    1.5,
    1e300,
    NaN,
    Infinity,
    1_733_000_000_123_456,
  ])
  expect(await elements('bool', [true, false, null])).toEqual([true, false, null])
})

test('nothing at all', async () => {
  expect(await elements('int4', [])).toEqual([])
})

test('columns are numbers, bytes, truth and text, whatever the application set for itself', async () => {
  const text = `SELECT 1::int8 AS big, 2::int2 AS small, 1.5::float4 AS real, '{"a" : 1}'::jsonb AS json, '{1,null}'::int8[] AS bigs,
    '{a,NULL}'::text[] AS texts, true AS truth, '\\x00ff'::bytea AS bytes, 1.50::numeric AS exact, 'a'::name AS name`
  const { rows } = await client.query({ text, types: COLUMN_TYPES })
  expect(rows).toEqual([
    {
      big: 1,
      small: 2,
      real: 1.5,
      json: '{"a": 1}',
      bigs: [1, null],
      texts: ['a', null],
      truth: true,
      bytes: Buffer.from([0, 255]),
      exact: '1.50',
      name: 'a',
    },
  ])
})

test('bytes of a server that escapes them in the old way', async () => {
  const { rows } = await client
    .query({ text: `SET bytea_output = 'escape'` })
    .then(() => client.query({ text: `SELECT '\\x00ff41'::bytea AS bytes`, types: COLUMN_TYPES }))
  expect(rows).toEqual([{ bytes: Buffer.from([0, 255, 65]) }])
})
