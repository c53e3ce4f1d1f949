/** No script fails half-way: wrong calls and keys of another type are refused before anything is written. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SCRIPT_NAMES, type ScriptName } from '#dist/src/lua/catalog.js'
import { ServerClock } from '../support/clock/server-clock.ts'
import { rejection } from '../support/event.ts'
import { type Argument, callOf, Lane } from './lane.ts'

let lane: Lane
let clock: ServerClock
let tokens: ReadonlyMap<string, string>

beforeAll(async () => {
  clock = await ServerClock.make()
  lane = await Lane.open(clock.env)
})
afterAll(async () => {
  await lane.close()
  await clock.remove()
})

const isOpen = (list: readonly string[]): boolean => list.at(-1)?.startsWith('...') ?? false

async function refused(name: ScriptName, args: readonly Argument[], keys?: readonly string[]): Promise<string> {
  const before = await lane.digest()
  const error = await rejection(lane.run(name, args, keys))
  expect(await lane.digest()).toBe(before)
  return error.message
}

/** All is due: retention, retries, leases. */
async function fillAndWait(): Promise<void> {
  clock.set(0)
  tokens = await lane.fill()
  clock.set(7_200_000)
}

describe.each(SCRIPT_NAMES)('%s', (name) => {
  test('does what it is asked on a lane with jobs in every state', async () => {
    await fillAndWait()
    const before = await lane.digest()
    await lane.run(name, callOf(name, tokens))
    const changes = (await lane.digest()) !== before
    expect(changes).toBe(lane.scripts[name].isWriting && !['lane_drop', 'lane_forget'].includes(name))
  })

  test('refuses another number of keys', async () => {
    await fillAndWait()
    const keys = lane.keysOf(name)
    const args = callOf(name, tokens)
    if (keys.length > 0) expect(await refused(name, args, keys.slice(1))).toContain(`HOLDFAST_ARGUMENTS ${name}`)
    const more = [
      'hf:{lua:default}:more',
      ...(lane.scripts[name].optionalKey === null ? [] : ['hf:{lua:default}:wakes']),
    ]
    expect(await refused(name, args, [...keys, ...more])).toContain(`HOLDFAST_ARGUMENTS ${name}`)
    expect(await refused(name, args, [])).toContain(`HOLDFAST_ARGUMENTS ${name}`)
  })

  test('refuses too few arguments, and too many', async () => {
    await fillAndWait()
    const args = callOf(name, tokens)
    const { args: listed } = lane.scripts[name]
    const named = listed.filter((each) => !each.startsWith('...')).length
    if (named > 0) expect(await refused(name, args.slice(0, named - 1))).toContain('HOLDFAST_ARGUMENTS')
    if (!isOpen(listed)) expect(await refused(name, [...args, 'more'])).toContain('HOLDFAST_ARGUMENTS')
    const isGrouped = ['job_enqueue', 'job_note', 'job_turn', 'lease_reap', 'lease_renew'].includes(name)
    if (!isGrouped) return
    expect(await refused(name, args.slice(0, -1))).toContain('HOLDFAST_ARGUMENTS')
    expect(await refused(name, [...args, 'more'])).toContain('HOLDFAST_ARGUMENTS')
  })

  test('meets a key of another type before it has written anything', async () => {
    for (const [at, key] of lane.keysOf(name).entries()) {
      for (const value of ['text', 'stream'] as const) {
        await fillAndWait()
        await lane.redis.del(key)
        await (value === 'text' ? lane.redis.set(key, '1') : lane.redis.xadd(key, '*', 'a', 'b'))
        const before = await lane.digest()
        const failure = await lane.run(name, callOf(name, tokens)).then(
          () => null,
          (error: Error) => error.message,
        )
        if (failure === null) continue
        expect(failure, `key ${at + 1}: ${key}`).toContain('WRONGTYPE')
        expect(await lane.digest(), `key ${at + 1}: ${key}`).toBe(before)
      }
    }
  })
})

describe('settlements that cannot be', () => {
  test.each([
    ['an unknown kind', 0, 'explode'],
    ['a retention that is no number', 3, 'soon'],
    ['a delay that is no number', 9, 'later'],
  ])('%s is refused with all others of the call', async (_what, place, value) => {
    await fillAndWait()
    for (const name of ['job_turn', 'lease_reap'] as const) {
      const args = [...callOf(name, tokens)]
      const first = args.indexOf('retry')
      args[first + place] = value
      expect(await refused(name, args)).toContain('HOLDFAST_ARGUMENTS a settlement')
    }
  })

  test('a group of kept completions with a wrong count is refused', async () => {
    await fillAndWait()
    const args = [...callOf('job_turn', tokens)]
    for (const count of [0, 2, 'many']) {
      args[args.indexOf('3600000') + 2] = count
      await refused('job_turn', args)
    }
  })

  test.each(['5 x   ', 'x    ', '5   - ', '0 -   ', '5', 'a b c d e'])(
    'the spec %j is refused with all other jobs of the call',
    async (spec) => {
      await fillAndWait()
      expect(await refused('job_enqueue', ['n1', '', 't\n\nu', 'n2', spec, 't\n\nu'])).toContain('HOLDFAST_ARGUMENTS')
    },
  )
})
