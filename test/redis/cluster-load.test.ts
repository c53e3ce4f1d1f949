/** A Cluster at work while its slots move and its nodes die: nothing accepted is lost or done in part, and work goes on soon after. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { registryKey } from '#dist/src/backends/redis/key.js'
import { lookFor } from '../support/look.ts'
import { RedisCluster, slotOf } from '../support/redis-cluster.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { ClusterScene } from './cluster-scene.ts'

const RESUME_MS = 5000
const WAKE_MS = 500
const TEST_MS = 90_000

let cluster: RedisCluster
let scene: ClusterScene | undefined

beforeAll(async () => {
  cluster = await RedisCluster.start({ appendOnly: true, appendFsync: 'no', nodeTimeoutMs: 1000 })
})
afterAll(() => cluster.stop())
afterEach(async () => {
  await scene?.stage.clear()
  scene = undefined
})

/** A replica has what is accepted, so that a failover loses nothing. */
const start = async (isSplit = false): Promise<ClusterScene> => {
  scene = await ClusterScene.start(cluster, `${cluster.url}?waitReplicas=1`, isSplit)
  return scene
}

async function refusals(node: RedisServer, word: string): Promise<number> {
  const stats = String(await node.command('INFO', 'errorstats'))
  return Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(stats)?.[1] ?? 0)
}

/** Resolves when a client was told so since then. */
async function isTold(node: RedisServer, word: string): Promise<void> {
  const before = await refusals(node, word)
  await lookFor(`${word} is said`, async () => ((await refusals(node, word)) > before ? true : undefined))
}

/** Starts it again as a replica that has caught up. */
async function bringBack(...nodes: readonly RedisServer[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.restart()))
  await cluster.inOrder()
  await lookFor('every primary has a replica', async () => {
    for (const node of cluster.nodes) {
      const [role, , replicas] = (await node.command('ROLE')) as readonly unknown[]
      if (role === 'master' && Array.isArray(replicas) && replicas.length === 0) return undefined
      if (role === 'master' && (await node.command('WAIT', 1, 50)) === 0) return undefined
    }
    return true
  })
}

/** Told with HOLDFAST_FIGURES, in milliseconds. */
const figures: Record<string, number> = {}
afterAll(() => {
  if (process.env.HOLDFAST_FIGURES !== undefined) console.log(figures)
})

/** Work goes on in each of these lanes, soon. */
async function goesOn(at: ClusterScene, lanes: readonly string[], what: string): Promise<void> {
  const times = await Promise.all(lanes.map((lane) => at.resumes(lane)))
  figures[`${what}: until work goes on`] = Math.max(...times)
  expect(Math.max(...times)).toBeLessThan(RESUME_MS)
  await at.works()
}

/** Nothing is wrong in the end, and who is idle is woken. */
async function endsWell(at: ClusterScene, what: string): Promise<void> {
  await at.settle()
  const wakeMs = await at.wakeUpMs()
  figures[`${what}: until an idle worker starts`] = wakeMs
  figures[`${what}: jobs`] = at.ledger().accepted.size
  expect(wakeMs).toBeLessThan(WAKE_MS)
}

it('F29 a busy lane is moved in halves, there and back', { timeout: TEST_MS }, async () => {
  const at = await start()
  const [lane = ''] = at.lanes
  const slot = at.slotOf(lane)
  for (const round of [1, 2, 3, 4]) {
    const from = await cluster.masterOf(slot)
    const migration = await cluster.migrate(slot, await cluster.otherMaster(from))
    const keys = Number(await from.command('CLUSTER', 'COUNTKEYSINSLOT', slot))
    await migration.moveKeys(Math.ceil(keys / 2))
    await isTold(from, 'TRYAGAIN')
    await migration.moveKeys()
    await isTold(from, 'ASK')
    await migration.finish()
    await goesOn(at, [lane], `move ${round}`)
  }
  // Where wake-ups and the registry of lanes are.
  const own = slotOf(registryKey(at.stage.namespace))
  const registry = await cluster.migrate(own, await cluster.otherMaster(await cluster.masterOf(own)))
  await registry.moveKeys(1)
  await goesOn(at, at.lanes, 'half of a registry')
  await registry.finish()
  await goesOn(at, at.lanes, 'after the moves')
  await endsWell(at, 'moves')
})

it('F28 a primary is killed, its replica takes over, and it comes back', { timeout: TEST_MS }, async () => {
  const at = await start()
  const [lane = ''] = at.lanes
  for (const round of [1, 2]) {
    const { killed, promoted } = await cluster.failover(at.slotOf(lane))
    expect(promoted).not.toBe(killed)
    // Until it is back, writes have no replica to go to.
    await bringBack(killed)
    await goesOn(at, at.lanes, `failover ${round}`)
  }
  await endsWell(at, 'failovers')
})

it('F28 worker processes for the lanes of other primaries go on while one is away', { timeout: TEST_MS }, async () => {
  const at = await start(true)
  const [lane = ''] = at.lanes
  const sick = await cluster.masterOf(at.slotOf(lane))
  const owners = await Promise.all(at.lanes.map((each) => cluster.masterOf(at.slotOf(each))))
  const others = at.lanes.filter((_lane, index) => owners[index] !== sick)
  expect(others).toHaveLength(4)
  let isOver = false
  const failover = cluster.failover(at.slotOf(lane)).then(({ killed }) => {
    isOver = true
    return killed
  })
  const times = await Promise.all(others.map((each) => at.resumes(each, 30)))
  expect(isOver).toBe(false)
  figures['thirty jobs in lanes of other primaries'] = Math.max(...times)
  await bringBack(await failover)
  await goesOn(at, at.lanes, 'split crew')
  await endsWell(at, 'split crew')
})

it('F28 two of three primaries are gone, the rest says CLUSTERDOWN, and they come back', {
  timeout: TEST_MS,
}, async () => {
  const at = await start()
  const survivor = await cluster.masterOf(at.slotOf(at.lanes[0] ?? ''))
  const roles = await Promise.all(cluster.nodes.map((node) => node.command('ROLE') as Promise<readonly unknown[]>))
  const killed = cluster.nodes.filter((node, index) => node !== survivor && roles[index]?.[0] === 'master')
  expect(killed).toHaveLength(2)
  await Promise.all(killed.map((node) => node.kill()))
  await isTold(survivor, 'CLUSTERDOWN')
  await bringBack(...killed)
  await goesOn(at, at.lanes, 'cluster down')
  await endsWell(at, 'cluster down')
})
