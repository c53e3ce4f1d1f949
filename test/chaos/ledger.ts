/**
 * What the processes of a chaos run noted in their ledger, read back and held against what the store says at the end. The handler
 * returns the epoch of its lease, so that an outcome tells which run it came from.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import type { AttemptRecord, Holdfast, JobRecord } from 'holdfast'

export interface Run {
  readonly epoch: number
  hasEnded: boolean
}

export interface Ledger {
  /** By key, every id under which it was accepted. */
  readonly accepted: ReadonlyMap<string, ReadonlySet<string>>
  /** By job, in the order of their starts. */
  readonly runs: ReadonlyMap<string, readonly Run[]>
  /** Enqueues that failed, by code and outcome. */
  readonly refused: ReadonlyMap<string, number>
}

export const readLedger = (path: string): Ledger => parseLedger(readFileSync(path, 'utf8'))

export function parseLedger(text: string): Ledger {
  const accepted = new Map<string, Set<string>>()
  const runs = new Map<string, Run[]>()
  const refused = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [what, first = '', second = '', third = '', fourth = ''] = line.split(' ')
    if (what === 'accepted') {
      const key = `${first}-${second}`
      accepted.set(key, (accepted.get(key) ?? new Set()).add(third))
    } else if (what === 'start') {
      const list = runs.get(first) ?? []
      list.push({ epoch: Number(third), hasEnded: false })
      runs.set(first, list)
    } else if (what === 'end') {
      const run = runs.get(first)?.find(({ epoch }) => epoch === Number(third))
      if (run !== undefined) run.hasEnded = true
    } else if (what === 'refused') {
      refused.set(`${third} ${fourth}`, (refused.get(`${third} ${fourth}`) ?? 0) + 1)
    }
  }
  return { accepted, runs, refused }
}

/** Reads on from where it was: who started runs meanwhile, and under which epoch. */
export class LedgerTail {
  readonly #file: number
  readonly #buffer = Buffer.alloc(1 << 16)
  #rest = ''

  constructor(path: string) {
    this.#file = openSync(path, 'a+')
  }

  starts(): readonly { readonly epoch: number; readonly pid: number }[] {
    let text = this.#rest
    for (let count = -1; count !== 0; ) {
      count = readSync(this.#file, this.#buffer)
      text += this.#buffer.toString('utf8', 0, count)
    }
    const lines = text.split('\n')
    this.#rest = lines.pop() ?? ''
    return lines.flatMap((line) => {
      const [what, , , epoch, pid] = line.split(' ')
      return what === 'start' ? [{ epoch: Number(epoch), pid: Number(pid) }] : []
    })
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** How far a producer came, so that the next process goes on from there. */
export function nextNumber({ accepted }: Ledger, name: string, to: number): number {
  for (let n = 0; n < to; n += 1) if (!accepted.has(`${name}-${n}`)) return n
  return to
}

/** The delay that the producer gives to a number. */
export const delayOf = (n: number): number => (n % 10 === 3 ? 100 + (n % 1_000) : 0)

export async function everyJob(hf: Holdfast): Promise<readonly JobRecord[]> {
  const all: JobRecord[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await hf.list({ limit: 500, cursor })
    all.push(...page.jobs)
    if (page.cursor === null) return all
    cursor = page.cursor
  }
}

/** What is wrong with the run as a whole; empty: nothing. */
export async function violations(hf: Holdfast, ledger: Ledger): Promise<readonly string[]> {
  const jobs = await everyJob(hf)
  const found = [...lostOrTwice(jobs, ledger), ...(await miscounted(hf, jobs))]
  for (const job of jobs) {
    found.push(...badEnd(job))
    const runs = ledger.runs.get(job.id) ?? []
    if (runs.length === 1 && job.attempts === 1) {
      if (runs[0]?.epoch !== job.leaseEpoch || !runs[0].hasEnded)
        found.push(`I4 ${job.id} completed by ${job.leaseEpoch}, ran as ${runs[0]?.epoch}`)
    } else {
      const [attempts, detail] = await Promise.all([hf.attempts(job.id), hf.get(job.id)])
      found.push(...badHistory(job, { attempts, output: detail?.output, runs }))
    }
  }
  return found
}

function lostOrTwice(jobs: readonly JobRecord[], { accepted, runs }: Ledger): readonly string[] {
  const found: string[] = []
  const ids = new Map(jobs.map(({ id, idempotencyKey }) => [id, idempotencyKey]))
  const byKey = new Map<string | null, string>()
  for (const { id, idempotencyKey } of jobs) {
    if (byKey.has(idempotencyKey)) found.push(`I12 two jobs of the key ${idempotencyKey}`)
    byKey.set(idempotencyKey, id)
  }
  for (const [key, given] of accepted) {
    for (const id of given) {
      if (!ids.has(id)) found.push(`I1 ${id} of ${key} was accepted and is gone`)
      else if (ids.get(id) !== key) found.push(`I12 ${id} was given for ${key} and has ${ids.get(id)}`)
    }
    if (given.size > 1) found.push(`I12 the key ${key} was answered with ${given.size} ids`)
  }
  for (const id of runs.keys()) if (!ids.has(id)) found.push(`I1 ${id} ran and is not there`)
  return found
}

async function miscounted(hf: Holdfast, jobs: readonly JobRecord[]): Promise<readonly string[]> {
  const { counts } = await hf.stats()
  return Object.entries(counts).flatMap(([state, count]) => {
    const listed = jobs.filter((job) => job.state === state).length
    return listed === count ? [] : [`I18 ${count} ${state} by the counters, ${listed} by the list`]
  })
}

function badEnd(job: JobRecord): readonly string[] {
  const { id, state, createdAt, startedAt, attempts, idempotencyKey } = job
  if (state !== 'completed') return [`I5 ${id} is ${state}`]
  const delay = delayOf(Number(idempotencyKey?.split('-')[1]))
  if (attempts === 1 && (startedAt ?? 0) < createdAt + delay) return [`I10 ${id} started before its time`]
  return []
}

interface History {
  readonly attempts: readonly AttemptRecord[]
  readonly output: unknown
  readonly runs: readonly Run[]
}

/** Of a job that ran, or was granted, more than once. */
function badHistory(job: JobRecord, { attempts, output, runs }: History): readonly string[] {
  const found: string[] = []
  const say = (what: string): void => {
    const told = attempts.map(({ attempt, leaseEpoch, outcome }) => `${attempt}:${leaseEpoch}:${outcome}`).join(' ')
    found.push(`${what}: ${job.id}, granted ${told}, ran as ${runs.map(({ epoch }) => epoch).join(' ')}`)
  }
  const epochs = attempts.map(({ leaseEpoch }) => leaseEpoch)
  const last = attempts.at(-1)
  if (epochs.some((epoch, index) => index > 0 && epoch <= (epochs[index - 1] ?? 0))) say('I3 epochs do not grow')
  if (new Set(runs.map(({ epoch }) => epoch)).size !== runs.length) say('I3 a lease ran twice')
  if (attempts.length !== job.attempts) say(`I5 ${job.attempts} attempts were charged`)
  if (attempts.filter(({ outcome }) => outcome === 'succeeded').length !== 1) say('I5 not one success')
  if (last?.outcome !== 'succeeded' || last.leaseEpoch !== job.leaseEpoch || output !== last.leaseEpoch)
    say(`I4 the outcome is of ${String(output)}`)
  if (runs.find(({ epoch }) => epoch === last?.leaseEpoch)?.hasEnded !== true) say('I4 the successful run did not end')
  if (runs.some(({ epoch }) => !epochs.includes(epoch))) say('I19 a run that no grant explains')
  if (attempts.slice(0, -1).some(({ outcome }) => outcome !== 'crashed' && outcome !== 'failed'))
    say('I19 granted again without a lost lease or a failure')
  const delay = delayOf(Number(job.idempotencyKey?.split('-')[1]))
  if ((attempts[0]?.startedAt ?? 0) < job.createdAt + delay) say('I10 started before its time')
  return found
}

/** How many runs there were beyond one a job. */
export function duplicatesOf({ runs }: Ledger): number {
  return [...runs.values()].reduce((sum, list) => sum + list.length - 1, 0)
}
