/** What `leaver.mjs` tells of its end: a process that is done with the store, or finds it gone, ends by itself. C022, C023, C024. */
import { expect } from 'vitest'
import type { Child } from './child.ts'
import type { FaultProxy } from './proxy.ts'

/** From the last word of the script to the end of its process; a clean close is given a second. */
export const LINGER_MS = 1_000
/** Its deadline of 2 s and the silence after it; the rest is for a busy machine. */
const STOP_MS = 4_000

/** Nothing was left unhandled either. */
export async function lingeredMs(child: Child): Promise<number> {
  const at = async (word: string): Promise<number> => Number((await child.line(word)).split(' ')[1])
  const [closed, exit] = [await at('closed'), await at('exit')]
  await child.exited
  expect(child.lines.filter((line) => line.startsWith('unhandled'))).toEqual([])
  return exit - closed
}

export const WAYS_AWAY = ['cut', 'blackhole'] as const

/** Its worker is told to stop while the server behind the proxy is away; it does within its deadline, and its process ends. */
export async function stopsWhileAway(child: Child, proxy: FaultProxy, how: (typeof WAYS_AWAY)[number]): Promise<void> {
  await child.line('ready')
  if (how === 'cut') {
    proxy.set('refuse')
    proxy.reset()
  } else proxy.set('blackhole')
  child.tell('stop')
  const [, stopMs] = (await child.line('stopped')).split(' ')
  expect(Number(stopMs)).toBeLessThan(STOP_MS)
  expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
}
