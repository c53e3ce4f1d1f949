/** The lines of one thread on their way by themselves: what is sent, held and left out, without a thread. */
import { beforeEach, expect, it } from 'vitest'
import { type Line, LogWindow } from '#dist/workers/log-window.js'
import { capMessages } from '#dist/workers/output-cap.js'

const WINDOW = 500

let taken: Int32Array
let sent: Line[]
let window: LogWindow

beforeEach(() => {
  taken = new Int32Array(new SharedArrayBuffer(4))
  sent = []
  window = new LogWindow(taken, (line) => sent.push(line))
})

function write(count: number, size = 10): void {
  for (let line = 0; line < count; line += 1) window.write({ level: 'info', fields: { line }, message: 'x', size })
}

const shown = (lines: readonly Line[]): unknown[] => lines.map(({ fields }) => fields.line ?? fields)

it('sends at once, and no more than the window until some are taken', () => {
  write(700)
  expect(sent).toHaveLength(WINDOW)
  Atomics.add(taken, 0, 100)
  write(1)
  expect(sent).toHaveLength(WINDOW + 100)
  expect(shown(sent)).toEqual(Array.from({ length: WINDOW + 100 }, (_, line) => line))
  window.flush()
  expect(sent).toHaveLength(701)
})

it('holds the newest thousand, and says in their place how many were left out', () => {
  write(10_000)
  window.flush()
  const [note, first] = sent.slice(WINDOW)
  expect(note).toMatchObject({ level: 'warn', fields: { left_out: 10_000 - WINDOW - 1_000 } })
  expect([first?.fields.line, sent.at(-1)?.fields.line, sent.length]).toEqual([9_000, 9_999, WINDOW + 1 + 1_000])
})

it('holds a megabyte at most', () => {
  write(WINDOW)
  write(900, 30_000)
  window.flush()
  expect(sent).toHaveLength(WINDOW + 1 + 33)
  expect(sent.at(-1)?.fields).toEqual({ line: 899 })
})

it('goes on when the counts have gone round', () => {
  const rounds = 2 ** 31 - 50
  // As after so many lines, all of them taken.
  Reflect.set(taken, 0, rounds)
  window = new LogWindow(taken, (line) => sent.push(line))
  write(100)
  Atomics.add(taken, 0, 100)
  write(WINDOW)
  expect(sent).toHaveLength(100 + WINDOW)
  write(1)
  expect(sent).toHaveLength(100 + WINDOW)
})

it('a handler has a thousand messages of its own to the main thread', () => {
  const posted: unknown[] = []
  const port = { postMessage: (message: unknown) => void posted.push(message) }
  capMessages(port as never)
  for (let count = 0; count < 5_000; count += 1) port.postMessage(count)
  expect([posted.length, posted.at(-1)]).toEqual([1_000, 999])
})
