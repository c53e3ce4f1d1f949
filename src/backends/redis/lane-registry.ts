/**
 * The lanes of a namespace, by when they were last said to be in use. A producer notes a lane before its first job in it and again
 * every hour, so that one nobody has noted for two days and that is empty can be dropped. Lives in the namespace's own slot: a crash
 * between note and job leaves a lane without jobs, never a job in a lane that nobody knows.
 */
import type { Clock } from '../../clock.ts'
import { registryKey } from './key.ts'
import { listOf, numberOf, textOf } from './reply.ts'
import type { RedisSession } from './session.ts'

const NOTED_MS = 3_600_000
/** What was noted this lately cannot have been dropped. */
const FRESH_MS = 60_000
const DROPPED_AFTER_MS = 48 * 3_600_000

export class LaneRegistry {
  private readonly session: RedisSession
  private readonly clock: Clock
  private readonly key: string
  /** When this process noted each lane, by the monotonic clock. */
  private readonly noted = new Map<string, number>()
  /** The last list that was read for a look at all lanes, and what tells whether it still is the list. */
  remembered: { readonly lanes: readonly string[]; readonly mark: string } | null = null

  constructor(session: RedisSession, clock: Clock) {
    this.session = session
    this.clock = clock
    this.key = registryKey(session.namespace)
  }

  /** Resolves when the lane is known to all. Null: it is already. */
  note(lane: string): Promise<void> | null {
    const at = this.noted.get(lane)
    return at !== undefined && this.clock.monotonic() - at < NOTED_MS ? null : this.write(lane)
  }

  private async write(lane: string): Promise<void> {
    const at = this.clock.monotonic()
    await this.session.servers.run(this.session.scripts.lane_register, [this.key], [lane])
    this.noted.set(lane, at)
  }

  /**
   * Told that a job was the first of its lane. Where this process noted the lane long ago, the lane was dropped since (the server's clock
   * may have jumped), so it is noted again. A failure is made up for before the next job.
   */
  async isFirst(lane: string): Promise<void> {
    const at = this.noted.get(lane)
    if (at === undefined || this.clock.monotonic() - at < FRESH_MS) return
    this.noted.delete(lane)
    await this.write(lane).catch(() => {})
  }

  /** After a change of server nothing that was noted is sure. */
  forget(): void {
    this.noted.clear()
    this.remembered = null
  }

  /** All lanes, sorted by name. */
  async list(): Promise<readonly string[]> {
    const lanes = await this.session.servers.command('ZRANGE', this.key, [this.key, 0, -1])
    return listOf(lanes).map(textOf).sort()
  }

  /** Drops lanes that are empty and out of use. `nowMs` is the server's. */
  async dropUnused(nowMs: number): Promise<void> {
    const { servers, scripts } = this.session
    const before = nowMs - DROPPED_AFTER_MS
    const unused = await servers.command('ZRANGEBYSCORE', this.key, [this.key, '-inf', before, 'LIMIT', 0, 100])
    for (const lane of listOf(unused).map(textOf)) {
      const isDropped = numberOf(await this.session.run('lane_drop', lane, [])) === 1
      if (isDropped) await servers.run(scripts.lane_forget, [this.key], [lane, before])
    }
  }
}
