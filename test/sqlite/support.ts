/** Stores, clocks, folders and jobs for the tests of the SQLite store. Folders are removed when the process ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Surroundings } from '#dist/src/backends/sqlite/connection.js'
import { SqliteStore, type SqliteStoreOptions } from '#dist/src/backends/sqlite/store.js'
import { type Clock, systemClock } from '#dist/src/clock.js'
import type { JobDefinition } from '#dist/src/job.js'
import { systemRandom } from '#dist/src/random.js'

export class ManualClock implements Clock {
  ms = 1_800_000_000_000
  now(): number {
    return this.ms
  }
  monotonic(): number {
    return this.ms
  }
  advance(ms: number): void {
    this.ms += ms
  }
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))

export const surroundingsOf = (clock: Clock): Surroundings => ({
  clock,
  random: systemRandom,
  pause: (durationMs) => {
    Atomics.wait(sleeper, 0, 0, durationMs)
  },
})

export function openStore(options: Partial<SqliteStoreOptions> = {}, clock: Clock = systemClock): SqliteStore {
  return new SqliteStore({ path: ':memory:', namespace: 'test', ...options }, surroundingsOf(clock))
}

/** What a backend is opened with beside its path. */
export const quiet = {
  namespace: 'test',
  clock: systemClock,
  random: systemRandom,
  warn: () => {},
  openDeadlineMs: 10_000,
} as const

const folders: string[] = []
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A path in a fresh folder. */
export function freshPath(name = 'jobs.db'): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  folders.push(folder)
  return join(folder, name)
}

export const job = (id: string, overrides: Partial<JobDefinition> = {}): JobDefinition => ({
  id: `mail/${id}`,
  type: 'send',
  lane: 'mail',
  payload: '{"to":"a@b.c"}',
  priority: 0,
  runAt: null,
  delayMs: 0,
  deadlineAt: null,
  timeoutMs: null,
  maxAttempts: 7,
  maxAttemptsFixed: false,
  retry: null,
  maxCrashes: 3,
  idempotencyKey: null,
  concurrencyKey: null,
  metadata: null,
  traceId: null,
  keepResultMs: null,
  replayOf: null,
  ...overrides,
})

export const claim = (overrides: Partial<ClaimShape> = {}): ClaimShape => ({
  workerId: 'w1',
  nonce: 'n1',
  lanes: ['mail'],
  limit: 10,
  leaseMs: 30_000,
  keepDeadMs: null,
  ...overrides,
})

interface ClaimShape {
  readonly workerId: string
  readonly nonce: string
  readonly lanes: readonly string[]
  readonly limit: number
  readonly leaseMs: number
  readonly keepDeadMs: number | null
}
