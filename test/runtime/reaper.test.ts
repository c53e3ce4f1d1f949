/** Rounds of taking back leases: they go on while something comes of them, and end when nothing does. */
import { expect, it } from 'vitest'
import type { BackendActor } from '#dist/src/actors/backend-actor.js'
import { reapExpired } from '#dist/src/actors/reaper.js'
import type { ExpiredLease } from '#dist/src/backends/protocol/index.js'
import { parseRetention } from '#dist/src/retention.js'

const lease = (n: number): ExpiredLease => ({
  id: `mail/${n}`,
  token: `mail/${n}:1:w:n`,
  workerId: 'w',
  attempt: 1,
  maxAttempts: 3,
  crashes: 0,
  maxCrashes: 3,
  cancelRequested: false,
  startedAt: 0,
  expiredForMs: 1,
})

/** A store that names these leases, round by round, and says the same of each decision. */
function store(rounds: readonly (readonly number[])[], verdict: string): { backend: BackendActor; asked: number[] } {
  const asked: number[] = []
  const ask = async (_type: string, { decisions }: { decisions: readonly unknown[] }) => {
    const named = rounds[Math.min(asked.length, rounds.length - 1)] ?? []
    asked.push(decisions.length)
    if (asked.length > 10) throw new Error('it goes on and on')
    return { verdicts: decisions.map(() => verdict), expired: named.map(lease) }
  }
  return { backend: { ask } as unknown as BackendActor, asked }
}

const reap = (backend: BackendActor): Promise<number> =>
  reapExpired({ backend, retention: parseRetention({}), onReaped: () => {} })

it('goes on until no lease is named any more', async () => {
  const { backend, asked } = store([[1, 2], [3], []], 'applied')
  expect(await reap(backend)).toBe(3)
  expect(asked).toEqual([0, 2, 1])
})

it('ends when nothing came of what was named, however often it is named', async () => {
  const { backend, asked } = store([[1, 2]], 'lost')
  expect(await reap(backend)).toBe(0)
  expect(asked).toEqual([0, 2])
})
