/**
 * One server that is cut off, silenced, delayed, frozen and restarted again and again under load, for HOLDFAST_OUTAGE_SECONDS. After
 * each fault both workers claim again within five seconds, `health()` tells the truth, and at the end nothing is missing.
 */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect, type Holdfast } from 'holdfast'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SeededRandom } from '../simulation/random.ts'
import { lookFor } from '../support/look.ts'
import { FaultProxy } from '../support/proxy.ts'
import { ServerFolder } from '../support/server-process.ts'
import { type Member, producer, workerMember } from './crew.ts'
import type { Outage } from './faults.ts'
import { duplicatesOf, LedgerTail, readLedger, violations } from './ledger.ts'

const seed = Number(process.env.HOLDFAST_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))
const WORKER = { lease: 2_000, reap: 500, poll: 500, concurrency: 4, workMs: 30 }
const RESUMES_MS = 5_000
/** When `health()` is asked and well again, all the rest of a busy machine included. */
const WELL_MS = 8_000
/** `health()` answers within 2 s; the rest is for a busy machine. */
const HEALTH_MS = 4_000
const NAMESPACE = 'outage'

/** A server that goes away and comes back. */
export interface Ground {
  readonly url: string
  readonly port: number
  urlBehind(proxy: FaultProxy): string
  readonly outages: (proxy: FaultProxy) => readonly Outage[]
  /** What a recount of all that it has finds wrong; empty: nothing. */
  miscounts(namespace: string): Promise<readonly string[]>
  stop(): Promise<void>
}

export interface Outages {
  /** What befalls it, by number. */
  readonly faults: string
  /** HOLDFAST_OUTAGE_SECONDS has the last word. */
  readonly seconds: number
  readonly ground: () => Promise<Ground>
}

let ground: Ground
let proxy: FaultProxy
let folder: ServerFolder
const children: { kill(): Promise<void> }[] = []

export function outageSuite({ faults, seconds: wanted, ground: make }: Outages): void {
  const seconds = Number(process.env.HOLDFAST_OUTAGE_SECONDS ?? wanted)
  beforeAll(async () => {
    ground = await make()
    proxy = await FaultProxy.start({ upstream: ground.port, seed })
    folder = await ServerFolder.make('outage')
  })
  afterAll(async () => {
    await Promise.all(children.map((child) => child.kill()))
    await proxy?.close()
    await ground?.stop()
    await folder?.remove()
  })

  it(
    `${faults} a server that comes and goes: claiming resumes, nothing is lost or early: I1 I3 I4 I5 I10 I12 I16 I18 I19`,
    () => play(seconds),
    seconds * 1_000 + 120_000,
  )
}

interface Scene {
  readonly hf: Holdfast
  readonly tail: LedgerTail
  readonly workers: readonly Member[]
  readonly random: SeededRandom
}

/** One fault; resolves with how long after its end the last worker claimed again. */
async function suffer(outage: Outage, { hf, tail, workers, random }: Scene): Promise<number> {
  const lastsMs = outage.isTotal ? 2_500 + 3_500 * random.next() : 1_000 + 4_000 * random.next()
  const lasts = setTimeout(lastsMs)
  await outage.begin()
  if (outage.isTotal) {
    const before = performance.now()
    const { ok } = await hf.health()
    expect(performance.now() - before, `health() during ${outage.name}`).toBeLessThan(HEALTH_MS)
    expect(ok, `health() during ${outage.name}`).toBe(false)
  }
  await lasts
  await outage.heal()
  const healedAt = performance.now()
  const healedEpoch = Date.now() * 1000
  const silent = new Set(workers.map(({ child }) => child.pid))
  await lookFor(`both workers claim after ${outage.name}`, async () => {
    for (const { epoch, pid } of tail.starts()) if (epoch > healedEpoch) silent.delete(pid)
    return silent.size === 0 ? true : undefined
  })
  const resumedMs = Math.round(performance.now() - healedAt)
  await lookFor(`health() is well after ${outage.name}`, async () => ((await hf.health()).ok ? true : undefined))
  expect(performance.now() - healedAt, `health() after ${outage.name}`).toBeLessThan(WELL_MS)
  return resumedMs
}

async function play(seconds: number): Promise<void> {
  console.log(`seed ${seed}`)
  const random = new SeededRandom(seed)
  const place = { url: ground.urlBehind(proxy), namespace: NAMESPACE, ledger: join(folder.path, 'ledger') }
  const direct = await connect(ground.url, { namespace: NAMESPACE })
  const hf = await connect(place.url, { namespace: NAMESPACE })
  const tail = new LedgerTail(place.ledger)
  const workers = ['w1', 'w2'].map((name) => workerMember(name, place, WORKER))
  const source = producer('p1', place, { from: 0, to: 1_000_000, batch: 5, everyMs: 100 })
  children.push(source, ...workers.map(({ child }) => child))
  await Promise.all([source, ...workers.map(({ child }) => child)].map((child) => child.line('ready')))
  const scene = { hf, tail, workers, random }
  const kinds = ground.outages(proxy)
  const until = performance.now() + seconds * 1_000
  const resumed: [string, number][] = []
  for (let turn = 0; performance.now() < until; turn += 1) {
    const outage = kinds[turn % kinds.length] as Outage
    resumed.push([outage.name, await suffer(outage, scene)])
    // Some work between two faults.
    await setTimeout(500 + 1_000 * random.next())
  }
  source.tell('stop')
  await source.line('done')
  await lookFor('all jobs have ended', async () => {
    const { counts, total } = await direct.stats()
    return counts.completed === total ? true : undefined
  })
  const ledger = readLedger(place.ledger)
  const [maximum] = [...resumed].sort(([, a], [, b]) => b - a)
  console.log(`${resumed.length} faults, slowest to resume ${maximum?.join(' ')} ms, ${ledger.accepted.size} jobs,`)
  console.log(`${duplicatesOf(ledger)} repeated runs, refused enqueues ${JSON.stringify([...ledger.refused])}`)
  console.log(resumed.map(([name, ms]) => `${name} ${ms}`).join(', '))
  expect((await violations(direct, ledger)).slice(0, 20)).toEqual([])
  expect((await ground.miscounts(NAMESPACE)).slice(0, 20)).toEqual([])
  expect(maximum?.[1]).toBeLessThan(RESUMES_MS)
  tail.close()
  await Promise.all([direct.close(), hf.close()])
}
