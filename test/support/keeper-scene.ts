/**
 * A job held by a process whose main loop is blocked, beside a worker that waits to take it, while something happens to the thread
 * that renews its lease. For stores on a server, whose thread has a connection of its own.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineJob, type Holdfast, handle } from 'holdfast'
import { expect, onTestFinished } from 'vitest'
import type { Child } from './child.ts'
import { eventually } from './event.ts'

const task = defineJob<unknown, string>('task')
/** Longer than a busy machine needs to connect again. */
const LEASE_MS = 1_000

export interface KeeperStage {
  client(): Promise<Holdfast>
  /** A process on the same store and namespace. */
  child(script: string, ...args: readonly string[]): Child
}

interface Held {
  readonly hf: Holdfast
  readonly id: string
  readonly child: Child
  /** Ends the block of `spinUntil`. */
  free(): void
  /** Resolves when the lease has been renewed for so long that it had run out otherwise. */
  outlives(): Promise<void>
  /** The job ends where it started. */
  isKept(): Promise<void>
}

async function hold(stage: KeeperStage, how: 'spin' | 'spinUntil', held: '' | 'held'): Promise<Held> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-keeper-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'free')
  const hf = await stage.client()
  const detail = how === 'spin' ? String(3 * LEASE_MS) : file
  const child = stage.child('keeper.mjs', how, detail, JSON.stringify({ lease: LEASE_MS }), held)
  await child.line('ready')
  const job = await hf.enqueue(task, null)
  await child.line('started')
  await hf.worker({ handlers: [handle(task, () => 'of the second')], poll: 20, reap: 40 })
  const expiresAt = async (): Promise<number> => (await hf.get(job.id))?.leaseExpiresAt ?? 0
  return {
    hf,
    id: job.id,
    child,
    free: () => writeFileSync(file, ''),
    outlives: async () => {
      const before = await expiresAt()
      await eventually(
        async () => (await expiresAt()) > before + 1.5 * LEASE_MS,
        'the lease is renewed again and again',
      )
    },
    isKept: async () => {
      expect(await job.result()).toBe('of the child')
      expect(await hf.attempts(job.id)).toHaveLength(1)
    },
  }
}

/** F5: the thread is terminated, replaced, and stands in again; meanwhile the main loop renews. */
export async function threadDies(stage: KeeperStage): Promise<void> {
  const { child, outlives, isKept } = await hold(stage, 'spin', 'held')
  child.tell('terminate')
  await child.line('keeper main')
  await outlives()
  await child.line('replaced')
  child.tell('block')
  await isKept()
}

/** F17: the connection of the thread is cut while nobody else can renew. */
export async function connectionIsCut(stage: KeeperStage, cut: () => Promise<unknown>): Promise<void> {
  const { outlives, free, isKept } = await hold(stage, 'spinUntil', '')
  await cut()
  await outlives()
  free()
  await isKept()
}

/** What the client of a caller tells of who renews: capability, health, and warnings. */
export async function keeperOf(hf: Holdfast): Promise<readonly string[]> {
  const worker = await hf.worker({ handlers: [handle(task, () => '')] })
  const { leaseKeeper } = hf.capabilities
  if (leaseKeeper === 'thread') {
    await eventually(async () => (await hf.health()).leases.keeper === 'thread', 'the thread is there')
  }
  const { keeper } = (await hf.health()).leases
  await worker.stop()
  return [leaseKeeper, keeper]
}
