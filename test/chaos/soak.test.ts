/**
 * Every store for minutes under random faults (HOLDFAST_SOAK_SECONDS, 180; `npm run soak` for an hour): one process lives through all
 * of it while others are killed beside it. At the end nothing is lost or wrong, and memory, open files, timers, sockets and
 * the server's connections are what they were after the first half minute.
 */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { SeededRandom } from '../simulation/random.ts'
import { Child } from '../support/child.ts'
import { lookFor } from '../support/look.ts'
import { ServerFolder } from '../support/server-process.ts'
import { type Member, workerMember } from './crew.ts'
import { readLedger, violations } from './ledger.ts'
import { type SoakStage, STAGES } from './soak-stages.ts'

const SECONDS = Number(process.env.HOLDFAST_SOAK_SECONDS ?? 180)
const ONLY = process.env.HOLDFAST_SOAK_STORE
const seed = Number(process.env.HOLDFAST_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))
/** Until caches, pools and threads are what they will be. */
const WARM_UP_MS = 25_000
const WORKER = { lease: 2_000, reap: 500, poll: 500, concurrency: 4 }
const NAMESPACE = 'soak'
/** Two of the process that stays, one of the one beside it. */
const CLIENTS = 3
const MEBIBYTE = 2 ** 20
/** What a collection may find more than before: code that was compiled meanwhile, buffers of the pool. */
const HEAP_SLACK = 12 * MEBIBYTE
/** The allocator keeps what it once had, and threads that were replaced leave their arenas. */
const RSS_SLACK = 160 * MEBIBYTE
/** Two threads of handlers, with four files and a port each, may have been down when the first count was taken: one that died comes back when it is needed. */
const THREADS = 2
const FILES_SLACK = 2 + THREADS * 4
const MEASURE_MS = 60_000

interface Measure {
  readonly heapUsed: number
  readonly external: number
  readonly rss: number
  readonly files: number
  readonly resources: Readonly<Record<string, number>>
  readonly accepted: { readonly task: number; readonly wild: number }
  readonly ended: { readonly task: number; readonly wild: number }
}

async function measured(soaker: Child, turn: number): Promise<Measure> {
  soaker.tell(`measure ${turn}`)
  const start = `measured ${turn} `
  const until = performance.now() + MEASURE_MS
  while (!soaker.lines.some((line) => line.startsWith(start)) && performance.now() < until) await setTimeout(50)
  return JSON.parse((await soaker.line(start)).slice(start.length)) as Measure
}

/** One fault after another: of the store, of the process that stays, or of the one beside it. */
async function suffer(stage: SoakStage, soaker: Child, victim: Member | null, random: SeededRandom): Promise<string> {
  const kinds = [...stage.faults, ...(victim === null ? ['freeze'] : ['freeze', 'kill'])]
  const kind = kinds[random.integer(0, kinds.length - 1)] as (typeof kinds)[number]
  if (kind === 'kill') await victim?.replace()
  else if (kind === 'freeze') {
    soaker.signal('SIGSTOP')
    await setTimeout(500 + 2_500 * random.next())
    soaker.signal('SIGCONT')
  } else if (typeof kind !== 'string') {
    await kind.begin()
    await setTimeout(1_000 + 3_000 * random.next())
    await kind.heal()
  }
  return typeof kind === 'string' ? kind : kind.name
}

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  echo: ['completed', 'dlq'],
  reports: ['completed', 'cancelled', 'dlq'],
  throws: ['dlq'],
  exits: ['dlq'],
  loops: ['dlq'],
}

/** Of the jobs that end badly on purpose: every one ended, and in a way that its act allows. */
async function wildViolations(url: string, path: string): Promise<readonly string[]> {
  const { readFileSync } = await import('node:fs')
  const hf = await connect(url, { namespace: `${NAMESPACE}-wild` })
  const found: string[] = []
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [what, act = '', id = ''] = line.split(' ')
    if (what !== 'wild') continue
    const job = await hf.get(id)
    if (job === null) found.push(`I1 ${id} is gone`)
    else if (ALLOWED[act]?.includes(job.state) !== true) found.push(`I5 ${id} (${act}) is ${job.state}`)
    // A lost lease may end one that would have completed, but then its history says so.
    else if (
      act === 'echo' &&
      job.state === 'dlq' &&
      !['CRASH_LOOP', 'LEASE_EXPIRED', 'MAX_ATTEMPTS_EXCEEDED'].includes(job.dlqCode ?? '')
    )
      found.push(`I5 ${id} (${act}) is dead with ${job.dlqCode}`)
  }
  await hf.close()
  return found
}

function leaks(first: Measure, last: Measure): readonly string[] {
  const found: string[] = []
  if (last.heapUsed > first.heapUsed + HEAP_SLACK) found.push(`heap ${first.heapUsed} → ${last.heapUsed}`)
  if (last.external > first.external + HEAP_SLACK) found.push(`external ${first.external} → ${last.external}`)
  if (last.rss > first.rss + RSS_SLACK) found.push(`rss ${first.rss} → ${last.rss}`)
  if (last.files > first.files + FILES_SLACK) found.push(`files ${first.files} → ${last.files}`)
  for (const [name, count] of Object.entries(last.resources))
    if (count > (first.resources[name] ?? 0) + THREADS) found.push(`${name} ${first.resources[name] ?? 0} → ${count}`)
  return found
}

describe.concurrent.each(STAGES.filter(({ name }) => ONLY === undefined || ONLY === name))(
  '$name',
  ({ name, open }) => {
    it(
      `F2 F3 F5 F7 F11-F18 minutes of faults on ${name} leave nothing lost, wrong or held: I1 I3 I4 I5 I10 I12 I16 I18 I19 I24`,
      async () => {
        const random = new SeededRandom(seed)
        const folder = await ServerFolder.make(`soak-${name}`)
        const stage = await open(folder.path, seed)
        const ledger = join(folder.path, 'ledger')
        const options = { ...WORKER, everyMs: 100, ...(stage.isShared ? {} : { keepCompleted: '2s' }) }
        const soaker = new Child('soaker.mjs', [stage.url, NAMESPACE, ledger, JSON.stringify(options)])
        const victim = stage.isShared
          ? workerMember('w2', { url: stage.url, namespace: NAMESPACE, ledger }, { ...WORKER, workMs: 10 })
          : null
        try {
          await soaker.line('ready')
          await setTimeout(WARM_UP_MS)
          const first = await measured(soaker, 1)
          const connections = await stage.connections()
          const suffered: string[] = []
          const until = performance.now() + SECONDS * 1_000 - WARM_UP_MS
          while (performance.now() < until) {
            suffered.push(await suffer(stage, soaker, victim, random))
            await setTimeout(500 + 1_500 * random.next())
          }
          const last = await measured(soaker, 2)
          console.log(`${name}: seed ${seed}, ${suffered.length} faults (${suffered.join(', ')})`)
          console.log(`${name}: first ${JSON.stringify(first)}\n${name}: last ${JSON.stringify(last)}`)
          expect(leaks(first, last)).toEqual([])
          expect(last.accepted.task).toBeGreaterThan(first.accepted.task)
          const most = Math.max(connections, CLIENTS * stage.connectionsMax)
          // A server may not have noticed yet that the last faults cost it some.
          await lookFor(`at most ${most} connections`, async () =>
            (await stage.connections()) <= most ? true : undefined,
          )
          soaker.tell('stop')
          await soaker.line('stopped')
          await soaker.exited
          if (stage.isShared) {
            const hf = await connect(stage.directUrl, { namespace: NAMESPACE })
            await lookFor('all jobs have ended', async () => {
              const { counts, total } = await hf.stats()
              return counts.completed === total ? true : undefined
            })
            expect((await violations(hf, readLedger(ledger))).slice(0, 20)).toEqual([])
            expect((await wildViolations(stage.directUrl, ledger)).slice(0, 20)).toEqual([])
            expect((await stage.miscounts(NAMESPACE)).slice(0, 20)).toEqual([])
            await hf.close()
          } else expect(last.ended.task).toBe(last.accepted.task)
        } finally {
          await Promise.all([soaker.kill(), victim?.child.kill()])
          await stage.close()
          await folder.remove()
        }
      },
      SECONDS * 1_000 + 180_000,
    )
  },
)
