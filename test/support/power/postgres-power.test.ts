/** A power cut of PostgreSQL takes no commit that was acknowledged, unless the server or the disk was allowed to lie. */
import { afterEach, describe, expect, it } from 'vitest'
import { gate, within } from '../event.ts'
import type { Settings } from '../postgres-cluster.ts'
import { PostgresServer } from '../postgres-server.ts'
import { type CutResult, type Disk, type Loss, PowerCut } from './power-cut.ts'

const CLIENTS = 4
const ACKNOWLEDGED = 200

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Outage extends CutResult {
  /** What was acknowledged and is gone. */
  readonly missing: readonly number[]
  /** What was acknowledged before the checkpoint began. */
  readonly checkpointed: readonly number[]
}

interface Scene {
  readonly disk?: Disk
  readonly settings?: Settings
  /** In the middle of it. Default: there is one. */
  readonly hasCheckpoint?: boolean
  readonly loss: Loss
  readonly seed: number
}

/** Clients that insert until the server is killed under them; then what their acknowledged rows became. */
async function cutUnderLoad({ disk, settings = {}, hasCheckpoint = true, loss, seed }: Scene): Promise<Outage> {
  const power = await PowerCut.make(disk)
  closers.push(() => power.remove())
  const server = await PostgresServer.start({ env: power.env, settings })
  closers.push(() => server.stop())
  await server.query('CREATE TABLE t (n int PRIMARY KEY, filler text)')
  await server.query('CHECKPOINT')
  power.checkpoint()
  const acknowledged: number[] = []
  const checkpointed: number[] = []
  const isEnough = gate()
  const runs = Array.from({ length: CLIENTS }, async (_, client) => {
    const connection = await server.connect()
    try {
      for (let n = client; ; n += CLIENTS) {
        await connection.query('INSERT INTO t VALUES ($1, $2)', [n, 'x'.repeat(500)])
        acknowledged.push(n)
        if (n === ACKNOWLEDGED && hasCheckpoint) {
          checkpointed.push(...acknowledged)
          await connection.query('CHECKPOINT')
        }
        if (n > 2 * ACKNOWLEDGED) isEnough.open()
      }
    } catch {
      // The server was killed.
    }
  })
  await within(isEnough.passed, 'enough rows', 60_000)
  await server.kill()
  await Promise.all(runs)
  const result = await power.cut(server.folder, loss, seed)
  await server.restart()
  const rows = await server.query<{ n: number }>('SELECT n FROM t')
  const there = new Set(rows.map(({ n }) => n))
  return { ...result, missing: acknowledged.filter((n) => !there.has(n)), checkpointed }
}

const losses: readonly Loss[] = ['all', 'suffix', 'scattered']

describe('a power cut of PostgreSQL', () => {
  it.each(losses)(
    'takes no acknowledged commit (%s of what was not synced is lost)',
    async (loss) => {
      const outage = await cutUnderLoad({ loss, seed: 7 })
      expect(outage.missing).toEqual([])
      expect(outage.changes).toBeGreaterThan(ACKNOWLEDGED)
    },
    90_000,
  )

  it('takes commits with synchronous_commit off', async () => {
    const settings = { synchronous_commit: 'off', wal_writer_delay: '10s' }
    const outage = await cutUnderLoad({ loss: 'all', seed: 1, settings })
    expect(outage.missing.length).toBeGreaterThan(0)
    expect(outage.checkpointed.length).toBeGreaterThan(0)
    expect(outage.missing.filter((n) => outage.checkpointed.includes(n))).toEqual([])
  }, 90_000)

  it('takes commits that the disk says it has', async () => {
    // A server that trusted such a disk with a checkpoint would not even start again.
    const outage = await cutUnderLoad({ loss: 'all', seed: 1, disk: 'lying', hasCheckpoint: false })
    expect(outage.missing.length).toBeGreaterThan(ACKNOWLEDGED)
  }, 90_000)
})
