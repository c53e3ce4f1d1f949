/** What is sent is what was given: text, numbers and bytes of every kind, and nothing of it shows in errors. */
import { inspect } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandOf } from '#dist/src/backends/redis/command-line.js'
import { rejection } from '../support/event.ts'
import { RedisServer } from '../support/redis-server.ts'
import { open, scriptOf } from './opening.ts'

let server: RedisServer

beforeAll(async () => {
  server = await RedisServer.start()
})

afterAll(() => server.stop())

const ALL = scriptOf('return ARGV', false)
const TEXTS = ['', 'plain', 'line\r\nbreak\r\n$3\r\n', 'nul\0', 'grüße 你好 🦊', '\ud800', 'x'.repeat(100_000)]
const NUMBERS = [0, -1, 2 ** 53, 0.5, 1e21]

test('a command is an array of bulk strings', () => {
  expect(commandOf('SET', ['k', 'ü', 1]).toWritable({})).toBe('*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nü\r\n$1\r\n1\r\n')
  expect(commandOf('INFO', []).toWritable({})).toBe('*1\r\n$4\r\nINFO\r\n')
})

test('text and numbers arrive as they are', async () => {
  const store = await open(server.url)
  const reply = await store.run(ALL, ['k'], [...TEXTS, ...NUMBERS])
  // A lone surrogate has no bytes of its own.
  const expected = [...TEXTS.map((text) => text.toWellFormed()), ...NUMBERS.map(String)]
  expect((reply as Buffer[]).map(String)).toEqual(expected)
})

test('bytes arrive as they are, beside text', async () => {
  const store = await open(server.url)
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
  const args = [all, Buffer.from(all), all.subarray(10, 20), new Uint8Array(0), 'ü', 7]
  const reply = (await store.run(ALL, ['k'], args)) as Buffer[]
  expect(reply.map((item) => item.toString('hex'))).toEqual([
    Buffer.from(all).toString('hex'),
    Buffer.from(all).toString('hex'),
    Buffer.from(all.subarray(10, 20)).toString('hex'),
    '',
    Buffer.from('ü').toString('hex'),
    Buffer.from('7').toString('hex'),
  ])
})

test('replies of every kind come as they are', async () => {
  const store = await open(server.url)
  const kinds = scriptOf("return {1, 'text', false, redis.status_reply('OK'), {2, {}}}", false)
  expect(await store.run(kinds, ['k'], [])).toEqual([1, Buffer.from('text'), null, Buffer.from('OK'), [2, []]])
})

test('an error shows no argument', async () => {
  const store = await open(server.url)
  for (const secret of ['canary', Buffer.from('canary')]) {
    const error = await rejection(store.run(scriptOf('return nil .. KEYS[1]'), ['k'], [secret]))
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/canary|63 61 6e 61/)
  }
})
