/** F33: the power goes under a server with a store on it. What the store has acknowledged is there afterwards, as its capability says. */
import { type Capabilities, connect } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { Child } from '../support/child.ts'
import { lookFor } from '../support/look.ts'
import type { Settings } from '../support/postgres-cluster.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { type Acknowledged, acknowledgedBy, missing } from '../support/power/acknowledged.ts'
import { type Loss, PowerCut } from '../support/power/power-cut.ts'
import { miscounts } from './dump.ts'
import { openBackend } from './support.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Aftermath extends Acknowledged {
  readonly missing: readonly string[]
  readonly miscounts: readonly string[]
  readonly durability: Capabilities['durability']
  readonly warnings: readonly unknown[]
}

/** Two processes enqueue, claim and complete until the server dies under them; then it starts from what was synced. */
async function cutUnderLoad(settings: Settings, loss: Loss, seed: number): Promise<Aftermath> {
  const power = await PowerCut.make()
  closers.push(() => power.remove())
  const server = await PostgresServer.start({ env: power.env, settings })
  closers.push(() => server.stop())
  const warnings: unknown[] = []
  const store = await openBackend(server.url, 'power', { warn: ({ code }) => warnings.push(code) })
  const { durability } = store.capabilities
  await store.close()
  await server.query('CHECKPOINT')
  power.checkpoint()
  const children = ['A', 'B'].map((name) => new Child('settler.mjs', [server.url, 'power', name]))
  closers.push(() => Promise.all(children.map((child) => child.kill())))
  await lookFor('enough is settled', async () => {
    const { settled } = acknowledgedBy(children)
    return settled.size >= 100 ? true : undefined
  })
  await server.kill()
  await Promise.all(children.map((child) => child.kill()))
  await power.cut(server.folder, loss, seed)
  await server.restart()
  const hf = await connect(server.url, { namespace: 'power' })
  closers.push(() => hf.close())
  const acknowledged = acknowledgedBy(children)
  return {
    ...acknowledged,
    missing: await missing(hf, acknowledged),
    miscounts: await miscounts(server),
    durability,
    warnings,
  }
}

describe('F33 a power cut under the store', () => {
  it.each([
    ['all', 1],
    ['scattered', 3],
  ] as const)(
    'takes nothing that was acknowledged (%s of what was not synced is lost): I1 I5 I18 I22',
    async (loss, seed) => {
      const after = await cutUnderLoad({}, loss, seed)
      expect(after.missing).toEqual([])
      expect(after.miscounts).toEqual([])
      expect(after.granted.size).toBeGreaterThan(100)
      expect([after.durability, after.warnings]).toEqual(['power', []])
    },
    90_000,
  )

  it('with synchronous_commit off takes some, and the store has said so', async () => {
    const after = await cutUnderLoad({ synchronous_commit: 'off', wal_writer_delay: '10s' }, 'all', 1)
    expect(after.missing.length).toBeGreaterThan(0)
    // What is left fits together all the same.
    expect(after.miscounts).toEqual([])
    expect([after.durability, after.warnings]).toEqual(['everysec', ['ASYNCHRONOUS_COMMIT']])
  }, 90_000)
})
