/**
 * Four workers and two producers as processes, which are killed and frozen at random while they do ten thousand jobs. The seed is
 * printed; HOLDFAST_CHAOS_SEED gives the same choices of victims again, though not the same moments.
 */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect } from 'holdfast'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { miscounts } from '../redis/stage.ts'
import { SeededRandom } from '../simulation/random.ts'
import { lookFor } from '../support/look.ts'
import { RedisServer } from '../support/redis-server.ts'
import { ServerFolder } from '../support/server-process.ts'
import { Member, type Place, producer, workerMember } from './crew.ts'
import { duplicatesOf, nextNumber, readLedger, violations } from './ledger.ts'

const JOBS_EACH = 5_000
const LEASE_MS = 1_000
const WORKER = { lease: LEASE_MS, reap: 200, poll: 100, concurrency: 8, workMs: 4 }
/** After the last fault: the leases of the dead, the next look at them, then what is left to do. */
const DRAIN_MS = 15_000
const seed = Number(process.env.HOLDFAST_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))

let server: RedisServer
let folder: ServerFolder
const members: Member[] = []

beforeAll(async () => {
  server = await RedisServer.start({ appendOnly: true, appendFsync: 'always' })
  folder = await ServerFolder.make('chaos')
})
afterAll(async () => {
  await Promise.all(members.map(({ child }) => child.kill()))
  await server?.stop()
  await folder?.remove()
})

function startMembers(place: Place): readonly Member[] {
  for (const name of ['w1', 'w2', 'w3', 'w4']) members.push(workerMember(name, place, WORKER))
  for (const name of ['p1', 'p2']) {
    const start = () => {
      const from = members.some((each) => each.name === name)
        ? nextNumber(readLedger(place.ledger), name, JOBS_EACH)
        : 0
      return producer(name, place, { from, to: JOBS_EACH, batch: 40, everyMs: 25 })
    }
    members.push(new Member(name, start))
  }
  return members
}

it('F2 F3 ten thousand jobs are done under SIGKILL, SIGSTOP past the lease and restarts: I1 I3 I4 I5 I10 I12 I16 I18 I19', async () => {
  console.log(`seed ${seed}`)
  const random = new SeededRandom(seed)
  const place = { url: server.url, namespace: 'chaos', ledger: join(folder.path, 'ledger') }
  const hf = await connect(server.url, { namespace: 'chaos' })
  const crew = startMembers(place)
  await Promise.all(crew.map(({ child }) => child.line('ready')))
  const total = 2 * JOBS_EACH
  const completed = async (): Promise<number> => (await hf.stats()).counts.completed
  let kills = 0
  let freezes = 0
  const frozen: Promise<void>[] = []
  const strike = (): Promise<void> | undefined => {
    const victim = crew[random.integer(0, crew.length - 1)] as Member
    if (random.next() < 0.5) {
      kills += 1
      return victim.replace()
    }
    freezes += 1
    const { child } = victim
    child.signal('SIGSTOP')
    const thaw = setTimeout(LEASE_MS * (0.2 + 2.3 * random.next())).then(() => child.signal('SIGCONT'))
    frozen.push(thaw)
    return undefined
  }
  while ((await completed()) < 0.8 * total) {
    // The pace of the faults is part of the scenario; nothing is awaited by it.
    await setTimeout(200 + 400 * random.next())
    await strike()
  }
  await Promise.all(frozen)
  // A killed producer left its numbers to the next one.
  for (const each of crew.slice(4)) await each.child.line('done')
  const healedAt = performance.now()
  await lookFor('all jobs have ended', async () => ((await completed()) === total ? true : undefined))
  const drainMs = Math.round(performance.now() - healedAt)
  const ledger = readLedger(place.ledger)
  const [found, { counts }] = [await violations(hf, ledger), await hf.stats()]
  console.log(`${kills} kills, ${freezes} freezes, ${duplicatesOf(ledger)} repeated runs, drained in ${drainMs} ms`)
  expect(found.slice(0, 20)).toEqual([])
  expect((await miscounts(server, 'chaos')).slice(0, 20)).toEqual([])
  expect(counts).toMatchObject({ completed: total, running: 0, queued: 0, scheduled: 0, retry_wait: 0, dlq: 0 })
  expect(ledger.accepted.size).toBe(total)
  expect(drainMs).toBeLessThan(DRAIN_MS)
  expect(kills).toBeGreaterThan(2)
  expect(freezes).toBeGreaterThan(2)
  await hf.close()
}, 90_000)
