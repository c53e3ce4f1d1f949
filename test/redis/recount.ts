/**
 * Recounts a namespace from its raw keys: every job is in exactly the place that its record says, and no entry anywhere is without
 * its job. Knows the layout on its own and asks nothing of the store, so that it can judge it. Pure: from a dump to what is wrong.
 */
import { createHash } from 'node:crypto'
import type { Column, Dump } from './dump.ts'

const TYPES: Readonly<Record<string, Column['type']>> = {
  meta: 'hash',
  ...{ defs: 'hash', run: 'hash', failures: 'hash', terms: 'hash', history: 'hash' },
  ...{ outputs: 'hash', progress: 'hash', logs: 'hash', idempotency: 'hash', keyed: 'hash', concurrency: 'hash' },
  fifo: 'list',
  ...{
    ready: 'zset',
    scheduled: 'zset',
    retrying: 'zset',
    aside: 'zset',
    leases: 'zset',
    deadlines: 'zset',
    parked: 'zset',
  },
  ...{ completed: 'zset', cancelled: 'zset', dlq: 'zset', keep: 'zset', keep_outputs: 'zset' },
}
const META_FIELDS = [
  'sequence',
  'removed',
  'paused',
  'orphans',
  'waited',
  'limits',
  'starts',
  'parked_after',
  'gate',
  'arrivals',
].concat(['I', 'R', 'K', 'E'].map((letter) => `held_${letter}`))
/** How much higher the sequence is of a lane that counts what it accepts. */
const GATED = 1e15
/** Where a job may be, by the state of its run; `-`: it never ran. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  '-': ['fifo', 'ready', 'scheduled', 'parked'],
  Q: ['ready', 'parked'],
  W: ['retrying', 'ready', 'parked'],
  R: ['leases'],
  X: ['leases'],
  C: ['completed'],
  K: ['cancelled'],
  D: ['dlq'],
}
const ASIDE = ['ready', 'scheduled', 'retrying', 'parked']
const WAITING = ['fifo', ...ASIDE]
const TERMINAL = ['completed', 'cancelled', 'dlq']
/** Time and sequence in front of an entry of fifo and ready. */
const ORDER_LENGTH = 27

const DEFINITION = /^(\d{13}) (\d{14}) (-?\d+) (-?\d*) (-?\d*)\n([^\n]*)\n([^\n]*)\n/
const RUN = /^([RXQWCKD])([^|]*)\|(\d+)\|(\d+)\|(\d{14})\|(\d*),(\d+),(-?\d+)(|\|[\s\S]*)$/

interface Job {
  readonly sequence: string
  readonly priority: number
  readonly deadline: string
  /** State of its run, or `-`. */
  readonly state: string
  readonly runAt: number
  readonly key: string | null
  readonly concurrencyKey: string | null
}

type Report = (what: string) => void

/** Empty: all is where it belongs. */
export function recount(dump: Dump, namespace: string): readonly string[] {
  const faults: string[] = []
  const lanes = new Map<string, Map<string, Column>>()
  let registry: ReadonlyMap<string, number> = new Map()
  for (const [name, column] of dump) {
    if (name.startsWith(`hf:{${namespace}}:`)) {
      if (column.type === 'zset' && name === `hf:{${namespace}}:lanes`) registry = column.scores
      else if (!/:(keyspace(:lock)?|wake:[^:]*|nudge:[^:]*|workers|beats)$/.test(name))
        faults.push(`unknown key ${name}`)
      continue
    }
    const [, lane = '', role = ''] = /^hf:\{[^:]*:([^}]*)\}:(.*)$/.exec(name) ?? []
    lanes.set(lane, (lanes.get(lane) ?? new Map<string, Column>()).set(role, column))
  }
  faults.push(...workerFaults(dump, namespace))
  for (const [name, columns] of lanes) {
    if (!registry.has(name)) faults.push(`${name}: not in the registry of lanes`)
    new LaneCount(columns, (what) => faults.push(`${name}: ${what}`)).check()
  }
  return faults
}

/** Each worker has a record and a time, or neither. */
function workerFaults(dump: Dump, namespace: string): readonly string[] {
  const workers = dump.get(`hf:{${namespace}}:workers`)
  const beats = dump.get(`hf:{${namespace}}:beats`)
  const recorded = workers?.type === 'hash' ? [...workers.fields.keys()] : []
  const timed = beats?.type === 'zset' ? [...beats.scores.keys()] : []
  return [
    ...recorded.filter((id) => !timed.includes(id)).map((id) => `worker ${id} has no beat`),
    ...timed.filter((id) => !recorded.includes(id)).map((id) => `the beat of ${id} has no worker`),
  ]
}

class LaneCount {
  private readonly columns: ReadonlyMap<string, Column>
  private readonly report: Report
  private readonly jobs = new Map<string, Job>()
  /** Places in which each job was found. */
  private readonly places = new Map<string, string[]>()

  constructor(columns: ReadonlyMap<string, Column>, report: Report) {
    this.columns = columns
    this.report = report
  }

  check(): void {
    for (const [role, { type }] of this.columns)
      if (TYPES[role] !== type) this.report(`${role} is an unexpected ${type}`)
    this.readJobs()
    this.checkMeta()
    this.countFifo()
    this.countReady()
    this.countParked()
    for (const set of ['scheduled', 'retrying']) this.countLater(set)
    for (const set of TERMINAL) this.countBySequence(set)
    for (const id of this.zset('leases').keys()) this.found(id, 'leases')
    for (const [id, job] of this.jobs) this.checkPlace(id, job)
    this.checkAside()
    this.checkDeadlines()
    this.checkColumns()
    this.checkKeys()
  }

  private hash(role: string): ReadonlyMap<string, string> {
    const column = this.columns.get(role)
    return column?.type === 'hash' ? column.fields : new Map()
  }

  private zset(role: string): ReadonlyMap<string, number> {
    const column = this.columns.get(role)
    return column?.type === 'zset' ? column.scores : new Map()
  }

  private found(id: string, place: string): void {
    if (!this.jobs.has(id)) this.report(`${place} has ${id}, which is not in defs`)
    this.places.set(id, [...(this.places.get(id) ?? []), place])
  }

  private readJobs(): void {
    const runs = this.hash('run')
    const sequences = new Set<string>()
    for (const [id, text] of this.hash('defs')) {
      const header = DEFINITION.exec(text)
      const runText = runs.get(id)
      const run = runText === undefined ? null : RUN.exec(runText)
      if (header === null || (runText !== undefined && run === null)) {
        this.report(`the record of ${id} cannot be read`)
        continue
      }
      const [, created, sequence = '', priority, deadline = '', runAt, , options = ''] = header
      if (sequences.has(sequence)) this.report(`two jobs have sequence ${sequence}`)
      sequences.add(sequence)
      if (run !== null && run[5] !== sequence) this.report(`the run of ${id} has sequence ${run[5]}, not ${sequence}`)
      this.jobs.set(id, {
        sequence,
        priority: Number(priority),
        deadline,
        state: run?.[1] ?? '-',
        runAt: Number(run?.[8] ?? (runAt || created)),
        ...keysOf(options),
      })
    }
  }

  private checkMeta(): void {
    const meta = this.hash('meta')
    for (const field of meta.keys()) if (!META_FIELDS.includes(field)) this.report(`meta has a field ${field}`)
    const gated = meta.has('gate') ? GATED : 0
    const last = Number(meta.get('sequence') ?? 0) - gated
    if (last < 0 || last >= GATED) this.report(`meta has the sequence ${last} ${gated > 0 ? 'with' : 'without'} a gate`)
    if (this.zset('parked').size > 0 && !meta.has('limits')) this.report('jobs are parked in a lane without limits')
    for (const [id, { sequence }] of this.jobs)
      if (Number(sequence) > last) this.report(`${id} has sequence ${sequence} after the last, ${last}`)
    if (Number(meta.get('orphans') ?? 0) !== 0) this.report(`meta counts ${meta.get('orphans')} orphans`)
    const others = [...this.columns.keys()].filter((role) => role !== 'meta')
    if (this.hash('defs').size === 0 && others.length > 0) this.report(`without jobs, and yet it has ${others}`)
  }

  private countFifo(): void {
    const column = this.columns.get('fifo')
    const items = column?.type === 'list' ? column.items : []
    let removed = 0
    let last = ''
    for (const entry of items) {
      const order = entry.slice(0, ORDER_LENGTH)
      if (order <= last || order.length < ORDER_LENGTH) this.report(`fifo has ${entry} out of order`)
      last = order
      if (entry.length === ORDER_LENGTH) {
        removed += 1
        continue
      }
      const id = entry.slice(ORDER_LENGTH)
      this.found(id, 'fifo')
      const job = this.jobs.get(id)
      if (job === undefined) continue
      if (order !== orderOf(job)) this.report(`fifo has ${id} as ${order}, not ${orderOf(job)}`)
      if (job.priority !== 0) this.report(`fifo has ${id} of priority ${job.priority}`)
    }
    const counted = Number(this.hash('meta').get('removed') ?? 0)
    if (counted !== removed) this.report(`meta counts ${counted} removed from fifo, which has ${removed}`)
    if (removed > 0 && removed === items.length) this.report('fifo has nothing but removed entries')
  }

  private countReady(): void {
    for (const [entry, score] of this.zset('ready')) {
      const id = entry.slice(ORDER_LENGTH)
      this.found(id, 'ready')
      const job = this.jobs.get(id)
      if (job === undefined) continue
      if (!entry.startsWith(orderOf(job))) this.report(`ready has ${entry}, not ${orderOf(job)}${id}`)
      // Zero has two signs.
      if (score + job.priority !== 0) this.report(`ready has ${id} at ${score}, its priority is ${job.priority}`)
    }
  }

  private countParked(): void {
    for (const [member, score] of this.zset('parked')) {
      const id = member.slice(50 + ORDER_LENGTH)
      this.found(id, 'parked')
      const job = this.jobs.get(id)
      if (job === undefined) continue
      const digest = createHash('sha1')
        .update(Buffer.from(job.concurrencyKey ?? '', 'latin1'))
        .digest('hex')
      const rank = String(2 ** 31 - 1 - job.priority).padStart(10, '0')
      if (score !== 0 || member !== digest + rank + orderOf(job) + id) this.report(`parked has ${id} as ${member}`)
      if (job.concurrencyKey === null) this.report(`parked has ${id}, which has no key`)
    }
  }

  private countLater(set: string): void {
    for (const [entry, score] of this.zset(set)) {
      const [, sequence, priority, id = ''] = /^(.{14})(-?\d+):(.*)$/s.exec(entry) ?? []
      this.found(id, set)
      const job = this.jobs.get(id)
      if (job === undefined) continue
      if (sequence !== job.sequence || Number(priority) !== job.priority) this.report(`${set} has ${id} as ${entry}`)
      if (score !== job.runAt) this.report(`${set} has ${id} at ${score}, not ${job.runAt}`)
    }
  }

  private countBySequence(set: string): void {
    for (const [id, score] of this.zset(set)) {
      this.found(id, set)
      const job = this.jobs.get(id)
      if (job !== undefined && score !== Number(job.sequence))
        this.report(`${set} has ${id} at ${score}, not ${job.sequence}`)
    }
  }

  private checkPlace(id: string, { state }: Job): void {
    const places = this.places.get(id) ?? []
    const [place] = places
    const fits = places.length === 1 && place !== undefined && PLACES[state]?.includes(place) === true
    if (!fits) this.report(`${id} in state ${state} is in ${places.join(' and ') || 'no place'}`)
  }

  private isIn(id: string, places: readonly string[]): boolean {
    return this.places.get(id)?.some((place) => places.includes(place)) === true
  }

  private checkAside(): void {
    const aside = this.zset('aside')
    for (const [id, { sequence }] of this.jobs) {
      const score = aside.get(id)
      if (this.isIn(id, ASIDE) ? score !== Number(sequence) : score !== undefined)
        this.report(`aside has ${id} at ${score ?? 'no place'}`)
    }
    for (const id of aside.keys()) if (!this.jobs.has(id)) this.report(`aside has ${id}, which is not in defs`)
  }

  private checkDeadlines(): void {
    const deadlines = this.zset('deadlines')
    for (const [id, { deadline }] of this.jobs) {
      const score = deadlines.get(id)
      const expected = deadline !== '' && this.isIn(id, WAITING) ? Number(deadline) : undefined
      if (score !== expected) this.report(`deadlines has ${id} at ${score ?? 'no place'}, not ${expected ?? 'none'}`)
    }
    for (const id of deadlines.keys()) if (!this.jobs.has(id)) this.report(`deadlines has ${id}, which is not in defs`)
  }

  /** Columns beside the definition: none without its job, and none that its state does not have. */
  private checkColumns(): void {
    for (const role of ['run', 'failures', 'terms', 'history', 'progress', 'logs'])
      for (const id of this.hash(role).keys())
        if (!this.jobs.has(id)) this.report(`${role} has ${id}, which is not in defs`)
    for (const [id, text] of this.hash('run')) {
      const tellsEnd = RUN.exec(text)?.[9] !== ''
      if (tellsEnd !== this.isIn(id, TERMINAL)) this.report(`the run of ${id} ${tellsEnd ? 'tells' : 'lacks'} an end`)
    }
    for (const [id, text] of this.hash('logs')) {
      const [head = '', ...lines] = text.split('\n').slice(0, -1)
      if (head !== `${lines.at(-1)?.split(' ', 2).join(' ')} ${lines.length}`)
        this.report(`the log of ${id} has ${lines.length} lines, but says ${head}`)
    }
    for (const id of this.zset('keep').keys())
      if (!this.isIn(id, TERMINAL)) this.report(`keep has ${id}, which has not ended`)
    const outputs = this.hash('outputs')
    for (const id of outputs.keys())
      if (!this.isIn(id, ['completed'])) this.report(`outputs has ${id}, which is not completed`)
    for (const id of this.zset('keep_outputs').keys())
      if (!outputs.has(id)) this.report(`keep_outputs has ${id}, which has no output`)
  }

  private checkKeys(): void {
    const shared = this.hash('concurrency')
    for (const [id, { concurrencyKey }] of this.jobs)
      if ((shared.get(id) ?? null) !== concurrencyKey) this.report(`concurrency has ${id} as ${shared.get(id)}`)
    for (const id of shared.keys()) if (!this.jobs.has(id)) this.report(`concurrency has ${id}, which is not in defs`)
    const [owners, names] = [this.hash('idempotency'), this.hash('keyed')]
    for (const [id, { key }] of this.jobs) {
      if ((names.get(id) ?? null) !== key) this.report(`keyed has ${id} as ${names.get(id) ?? 'nothing'}, not ${key}`)
      if (key !== null && owners.get(key) !== id)
        this.report(`idempotency has ${key} for ${owners.get(key)}, not ${id}`)
    }
    for (const [key, id] of owners)
      if (this.jobs.get(id)?.key !== key) this.report(`idempotency has ${key} for ${id}, which is not so named`)
    for (const id of names.keys()) if (!this.jobs.has(id)) this.report(`keyed has ${id}, which is not in defs`)
  }
}

const orderOf = ({ runAt, sequence }: Job): string => String(runAt).padStart(13, '0') + sequence

/** The keys in the options of a definition; the dump is Latin-1, the options are UTF-8. */
function keysOf(options: string): Pick<Job, 'key' | 'concurrencyKey'> {
  if (options === '') return { key: null, concurrencyKey: null }
  const { idempotencyKey, concurrencyKey }: { idempotencyKey?: string; concurrencyKey?: string } = JSON.parse(options)
  return { key: idempotencyKey ?? null, concurrencyKey: concurrencyKey ?? null }
}
