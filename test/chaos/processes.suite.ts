/**
 * Four workers and two producers as processes, which are killed and frozen at random while they do thousands of jobs, on any store that
 * several processes can share. The seed is printed; HOLDFAST_CHAOS_SEED gives the same choices of victims again, though not the same
 * moments.
 */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect } from 'holdfast'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SeededRandom } from '../simulation/random.ts'
import { lookFor } from '../support/look.ts'
import { ServerFolder } from '../support/server-process.ts'
import { Member, type Place, producer, workerMember } from './crew.ts'
import { duplicatesOf, nextNumber, readLedger, violations } from './ledger.ts'

const LEASE_MS = 1_000
const WORKER = { lease: LEASE_MS, reap: 200, poll: 100, concurrency: 8, workMs: 4 }
/** After the last fault: the leases of the dead, the next look at them, then what is left to do. */
const DRAIN_MS = 15_000
/** Of each kind. */
const FAULTS_MIN = 3
const seed = Number(process.env.HOLDFAST_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))

const NAMESPACE = 'chaos'

/** A store under chaos. */
export interface Field {
  readonly url: string
  /** What a recount of all that it has finds wrong; empty: nothing. */
  miscounts(namespace: string): Promise<readonly string[]>
  stop(): Promise<void>
}

export interface Chaos {
  /** Faults and cases, by number. */
  readonly faults: string
  readonly jobs: number
  readonly field: () => Promise<Field>
}

let field: Field
let folder: ServerFolder
const members: Member[] = []

function startMembers(place: Place, jobsEach: number): readonly Member[] {
  for (const name of ['w1', 'w2', 'w3', 'w4']) members.push(workerMember(name, place, WORKER))
  for (const name of ['p1', 'p2']) {
    const start = () => {
      const from = members.some((each) => each.name === name) ? nextNumber(readLedger(place.ledger), name, jobsEach) : 0
      return producer(name, place, { from, to: jobsEach, batch: 40, everyMs: 25 })
    }
    members.push(new Member(name, start))
  }
  return members
}

export function processesSuite({ faults, jobs, field: make }: Chaos): void {
  beforeAll(async () => {
    field = await make()
    folder = await ServerFolder.make('chaos')
  })
  afterAll(async () => {
    await Promise.all(members.map(({ child }) => child.kill()))
    await field?.stop()
    await folder?.remove()
  })

  it(
    `${faults}: ${jobs} jobs are done under SIGKILL, SIGSTOP past the lease and restarts: I1 I3 I4 I5 I10 I12 I16 I18 I19`,
    () => play(jobs),
    90_000,
  )
}

async function play(total: number): Promise<void> {
  console.log(`seed ${seed}`)
  const random = new SeededRandom(seed)
  const place = { url: field.url, namespace: NAMESPACE, ledger: join(folder.path, 'ledger') }
  const hf = await connect(field.url, { namespace: NAMESPACE })
  const crew = startMembers(place, total / 2)
  await Promise.all(crew.map(({ child }) => child.line('ready')))
  const completed = async (): Promise<number> => (await hf.stats()).counts.completed
  let kills = 0
  let freezes = 0
  const frozen: Promise<void>[] = []
  const strike = (): Promise<void> | undefined => {
    const victim = crew[random.integer(0, crew.length - 1)] as Member
    if ((kills + freezes) % 2 === 0) {
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
  // A quick machine is done before all that is wanted has happened: then it happens to idle ones.
  while ((await completed()) < 0.8 * total || kills < FAULTS_MIN || freezes < FAULTS_MIN) {
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
  expect((await field.miscounts(NAMESPACE)).slice(0, 20)).toEqual([])
  expect(counts).toMatchObject({ completed: total, running: 0, queued: 0, scheduled: 0, retry_wait: 0, dlq: 0 })
  expect(ledger.accepted.size).toBe(total)
  expect(drainMs).toBeLessThan(DRAIN_MS)
  expect(kills).toBeGreaterThanOrEqual(FAULTS_MIN)
  expect(freezes).toBeGreaterThanOrEqual(FAULTS_MIN)
  await hf.close()
}
