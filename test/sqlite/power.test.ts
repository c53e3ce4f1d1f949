/** F42: the power goes under processes with a store in one file. What the store has acknowledged is there afterwards. */
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { connect } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { Child } from '../support/child.ts'
import { lookFor } from '../support/look.ts'
import { type Acknowledged, acknowledgedBy, missing } from '../support/power/acknowledged.ts'
import { type Disk, type Loss, PowerCut } from '../support/power/power-cut.ts'
import { miscounts } from './dump.ts'
import { freshPath } from './support.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Scene {
  readonly disk?: Disk
  readonly loss: Loss
  readonly seed: number
}

interface Aftermath extends Acknowledged {
  readonly missing: readonly string[]
  readonly miscounts: readonly string[]
}

/** Two processes enqueue, claim and complete until they die; then the file and its log are as they were synced. */
async function cutUnderLoad({ disk, loss, seed }: Scene): Promise<Aftermath> {
  const power = await PowerCut.make(disk)
  closers.push(() => power.remove())
  const path = freshPath()
  const url = `sqlite:${path}`
  const first = await connect(url, { namespace: 'power' })
  await first.close()
  const children = ['A', 'B'].map((name) => new Child('settler.mjs', [url, 'power', name], power.env))
  closers.push(() => Promise.all(children.map((child) => child.kill())))
  await lookFor('enough is settled', async () => (acknowledgedBy(children).settled.size >= 300 ? true : undefined))
  await Promise.all(children.map((child) => child.kill()))
  await power.cut(dirname(path), loss, seed)
  // Memory that was shared by processes, and not a file.
  rmSync(`${path}-shm`, { force: true })
  const hf = await connect(url, { namespace: 'power' })
  closers.push(() => hf.close())
  const acknowledged = acknowledgedBy(children)
  return { ...acknowledged, missing: await missing(hf, acknowledged), miscounts: miscounts(path) }
}

describe('F42 a power cut under the store', () => {
  it.each([
    { loss: 'all', seed: 1 },
    { loss: 'suffix', seed: 2 },
    { loss: 'scattered', seed: 3 },
    { loss: 'scattered', seed: 4 },
  ] as const)(
    'takes nothing that was acknowledged ($loss of what was not synced is lost): I1 I5 I18 I22',
    async (scene) => {
      const after = await cutUnderLoad(scene)
      expect(after.missing).toEqual([])
      expect(after.miscounts).toEqual([])
      expect(after.granted.size).toBeGreaterThan(300)
    },
  )

  it('takes what a lying disk said it had: the cut is a cut', async () => {
    const after = await cutUnderLoad({ loss: 'all', seed: 1, disk: 'lying' }).catch((error: unknown) => error)
    // The file may be no database any more.
    expect(after instanceof Error || (after as Aftermath).missing.length > 0).toBe(true)
  })
})
