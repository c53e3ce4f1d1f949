/** Threads that say more than anybody can take: what reaches the main thread, and that nothing is lost without a word. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { failure, output, type Recorded, recorder, TestPool } from '../support/thread-pool.ts'

/** What a thread may have under way and hold at its end. */
const NEWEST = 1_000
const LINES = 400_000

let pool: TestPool

beforeAll(async () => {
  pool = new TestPool({ threads: 1 })
  await pool.actor.start()
})

afterAll(() => pool.actor.stop())

const numbers = (logs: Recorded['logs']): number[] =>
  logs.flatMap(({ fields }) => ('line' in fields ? [fields.line as number] : []))

const leftOut = (logs: Recorded['logs']): number =>
  logs.reduce((sum, { fields }) => sum + ('left_out' in fields ? (fields.left_out as number) : 0), 0)

describe.each(['logsWithoutPause', 'logsInPortions'])('a handler that %s', (act) => {
  it('has its newest lines taken in order, and those that were left out counted', async () => {
    const { services, seen } = recorder()
    expect(output(await pool.act(act, { lines: LINES }, services))).toBeUndefined()
    const lines = numbers(seen.logs)
    expect(lines.length).toBeLessThan(LINES / 4)
    expect(lines.length + leftOut(seen.logs)).toBe(LINES)
    expect(lines).toEqual(lines.toSorted((one, other) => one - other))
    expect(lines.slice(-NEWEST)).toEqual(Array.from({ length: NEWEST }, (_, line) => LINES - NEWEST + line))
    const notes = seen.logs.filter(({ fields }) => 'left_out' in fields)
    expect(new Set(notes.map(({ level }) => level))).toEqual(new Set(['warn']))
  })
})

it('a burst is taken whole while its handler waits', async () => {
  let done = (): void => undefined
  const allTaken = new Promise<void>((resolve) => {
    done = resolve
  })
  const taken: object[] = []
  const log = (_level: string, fields: object): void => {
    taken.push(fields)
    if (taken.length === 1_400) done()
  }
  const run = pool.run({ act: 'logsBurstThenWaits', lines: 1_400 }, recorder({ log }).services)
  await allTaken
  run.abort({ code: 'TIMEOUT', message: 'enough' })
  expect(output(await run.outcome)).toBeUndefined()
  expect(taken).toEqual(Array.from({ length: 1_400 }, (_, line) => ({ line })))
})

it('a thread that exits has said all that it held', async () => {
  const { services, seen } = recorder()
  expect(failure(await pool.act('logsThenExits', { lines: 1_200 }, services))).toMatchObject({ code: 'PANIC' })
  const said = Array.from({ length: 1_200 }, (_, line) => `line ${line}`)
  expect(seen.logs.map(({ message }) => message)).toEqual([...said, 'last words'])
})

it('messages of its own to the main thread go through the limit of the thread', async () => {
  expect(output(await pool.act('howItPosts'))).toBe('capped')
})
