/** A Cluster at work: two worker processes on lanes of every primary and a producer process for each of these, and what is held against them at the end. */
import { writeFileSync } from 'node:fs'
import { defineJob, type Holdfast } from 'holdfast'
import { expect } from 'vitest'
import { LaneKeys } from '#dist/src/backends/redis/key.js'
import { type Production, producer } from '../chaos/crew.ts'
import { type Ledger, readLedger, violations } from '../chaos/ledger.ts'
import type { Child } from '../support/child.ts'
import { lookFor } from '../support/look.ts'
import { type RedisCluster, slotOf } from '../support/redis-cluster.ts'
import { type Dump, Dumper } from './dump.ts'
import { recount } from './recount.ts'
import { RedisStage } from './stage.ts'

/** Polls as by default, so that a start within half of a second was a wake-up. */
const WORKER = { lease: 2000, reap: 200, concurrency: 4, workMs: 10 } as const
const PRODUCTION = { from: 0, to: 100_000, batch: 4, everyMs: 40 } as const satisfies Production
const task = defineJob<object>('task')

export const slotOfLane = (namespace: string, lane: string): number => slotOf(new LaneKeys(namespace, lane).key('defs'))

/** Two lanes of each primary, as pairs. */
export async function lanesOfAll(cluster: RedisCluster, namespace: string): Promise<readonly (readonly string[])[]> {
  const lanes = new Map<number, string[]>()
  for (let n = 0; [...lanes.values()].flat().length < 6; n += 1) {
    const { port } = await cluster.masterOf(slotOfLane(namespace, `lane${n}`))
    const those = lanes.get(port) ?? []
    if (those.length < 2) lanes.set(port, [...those, `lane${n}`])
  }
  return [...lanes.values()]
}

/** What all primaries have of a namespace. */
export async function dumpOf(cluster: RedisCluster, namespace: string): Promise<Dump> {
  const all = new Map<string, Dump extends ReadonlyMap<string, infer C> ? C : never>()
  for (const node of cluster.nodes) {
    if (node.pid === null) continue
    const [role] = (await node.command('ROLE')) as readonly unknown[]
    if (role !== 'master') continue
    const dumper = new Dumper(node.port)
    try {
      for (const [name, column] of await dumper.dump(namespace)) {
        if (all.has(name)) throw new Error(`${name} is on two nodes`)
        all.set(name, column)
      }
    } finally {
      dumper.close()
    }
  }
  return all
}

export class ClusterScene {
  readonly stage = new RedisStage()
  readonly cluster: RedisCluster
  readonly lanes: readonly string[]
  readonly hf: Holdfast
  readonly #path: string
  readonly #producers: readonly Child[]

  private constructor(parts: {
    readonly stage: RedisStage
    readonly cluster: RedisCluster
    readonly lanes: readonly string[]
    readonly hf: Holdfast
    readonly path: string
    readonly producers: readonly Child[]
  }) {
    this.stage = parts.stage
    this.cluster = parts.cluster
    this.lanes = parts.lanes
    this.hf = parts.hf
    this.#path = parts.path
    this.#producers = parts.producers
  }

  /** Resolves when every lane has had work done. `isSplit`: the lanes of each primary have a worker process of their own. */
  static async start(cluster: RedisCluster, url: string, isSplit = false): Promise<ClusterScene> {
    const stage = new RedisStage()
    const { namespace } = stage
    const path = await stage.file('ledger')
    writeFileSync(path, '')
    const pairs = await lanesOfAll(cluster, namespace)
    const lanes = pairs.flat()
    const hf = await stage.client(url)
    const seats = isSplit ? pairs : [lanes, lanes]
    const crew = seats.map((each) => stage.child('crew.mjs', url, path, JSON.stringify({ ...WORKER, lanes: each })))
    await Promise.all(crew.map((each) => each.line('ready')))
    const producers = pairs.map((pair, index) => {
      const child = producer(`p${index}`, { url, namespace, ledger: path }, { ...PRODUCTION, lanes: pair })
      stage.defer(() => child.kill())
      return child
    })
    const scene = new ClusterScene({ stage, cluster, lanes, hf, path, producers })
    await scene.works()
    return scene
  }

  ledger(): Ledger {
    return readLedger(this.#path)
  }

  slotOf(lane: string): number {
    return slotOfLane(this.stage.namespace, lane)
  }

  startsIn(lane: string): number {
    return [...this.ledger().runs].reduce((sum, [id, runs]) => sum + (id.startsWith(`${lane}/`) ? runs.length : 0), 0)
  }

  /** How long it takes until so many more jobs of the lane have started. */
  async resumes(lane: string, jobs = 1): Promise<number> {
    const before = this.startsIn(lane)
    const sinceMs = performance.now()
    await lookFor(`a job of ${lane} starts`, async () => (this.startsIn(lane) >= before + jobs ? true : undefined))
    return performance.now() - sinceMs
  }

  /** Resolves when every lane has had much to do. */
  async works(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => this.resumes(lane, 20)))
  }

  /** Ends the production, waits for the last job, and looks for anything that is not as it must be. */
  async settle(): Promise<void> {
    for (const each of this.#producers) each.tell('stop')
    await Promise.all(this.#producers.map((each) => each.line('done')))
    await lookFor('all jobs are done', async () => {
      const { counts, total } = await this.hf.stats()
      return counts.completed === total ? true : undefined
    })
    expect(this.ledger().accepted.size).toBeGreaterThan(0)
    expect(await violations(this.hf, this.ledger())).toEqual([])
    expect(recount(await dumpOf(this.cluster, this.stage.namespace), this.stage.namespace)).toEqual([])
  }

  /** Time from an enqueue to an idle worker's start, the longest of all lanes; of three rounds the best, since the machine may be busy. */
  async wakeUpMs(): Promise<number> {
    const rounds: number[] = []
    for (let round = 0; round < 3; round += 1) rounds.push(await this.#longestStart())
    return Math.min(...rounds)
  }

  async #longestStart(): Promise<number> {
    let longest = 0
    for (const lane of this.lanes) {
      const sinceMs = performance.now()
      const { id } = await this.hf.enqueue(task, {}, { queue: lane })
      await lookFor('an idle worker starts it', async () => (this.ledger().runs.has(id) ? true : undefined))
      longest = Math.max(longest, performance.now() - sinceMs)
    }
    return longest
  }
}
