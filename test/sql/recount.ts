/**
 * Recounts the tables of an SQL store: every job is in one place and looks as its state says, and nothing anywhere is without its job.
 * Knows the layout on its own and asks nothing of the store, so that it can judge it. Pure: from rows to what is wrong.
 */
export interface JobRow {
  readonly seq: number
  readonly ns: number
  readonly id: string
  readonly lane: string
  readonly state: string
  readonly attempts: number
  readonly max_attempts: number
  readonly lease_epoch: number
  readonly idempotency_key: string | null
  readonly token: string | null
  readonly worker_id: string | null
  readonly recorded: boolean
  readonly lease_expires_at: number | null
  readonly started_at: number | null
  readonly cancel_requested: boolean
}

/** `history`: how many attempts the record itself holds, where it does. */
export interface ArchiveRow extends Omit<JobRow, 'lease_expires_at'> {
  readonly history: number
}

export interface AttemptRow {
  readonly job_seq: number
  readonly lease_epoch: number
}

export interface Tables {
  readonly jobs: readonly JobRow[]
  readonly archive: readonly ArchiveRow[]
  /** Of attempts that did not succeed. */
  readonly attempts: readonly AttemptRow[]
  /** Of log lines that are kept apart from the record of their job. */
  readonly lines: readonly { readonly job_seq: number }[]
  /** Null: the rows of jobs are the only place of their keys. */
  readonly keys:
    | readonly { readonly ns: number; readonly lane: string; readonly key: string; readonly id: string }[]
    | null
  /** Null: nothing is counted apart. */
  readonly counters:
    | readonly { readonly ns: number; readonly lane: string; readonly state: string; readonly jobs: number }[]
    | null
}

const TERMINAL = ['completed', 'cancelled', 'dlq']

/** Empty: all is where it belongs. */
export function recount(tables: Tables): readonly string[] {
  return [...doubles(tables), ...tables.jobs.flatMap(jobFaults), ...attemptFaults(tables), ...keyFaults(tables)].concat(
    counterFaults(tables),
    tables.archive.flatMap(archiveFaults),
  )
}

function doubles({ jobs, archive }: Tables): string[] {
  const found: string[] = []
  const [ids, seqs, keys] = [new Set<string>(), new Set<number>(), new Set<string>()]
  for (const { ns, id, seq, lane, idempotency_key: key } of [...jobs, ...archive]) {
    if (ids.has(`${ns} ${id}`)) found.push(`${id} is there twice`)
    if (seqs.has(seq)) found.push(`${id} has sequence ${seq} of another job`)
    if (key !== null && keys.has(`${ns} ${lane} ${key}`)) found.push(`${id} is not the only job of the key ${key}`)
    ids.add(`${ns} ${id}`)
    seqs.add(seq)
    if (key !== null) keys.add(`${ns} ${lane} ${key}`)
  }
  return found
}

function jobFaults(job: JobRow): string[] {
  const found: string[] = []
  const { id, state, token, attempts, max_attempts: most } = job
  const lease = [job.lease_expires_at, job.worker_id, job.started_at, token]
  if (TERMINAL.includes(state)) found.push(`${id} is live and ${state}`)
  if (state === 'running' && (lease.includes(null) || attempts < 1)) found.push(`${id} runs without a whole lease`)
  if (state !== 'running' && job.lease_expires_at !== null) found.push(`${id} is ${state} and has a lease`)
  if (state !== 'running' && job.cancel_requested) found.push(`${id} is ${state} and to be cancelled`)
  if (!id.startsWith(`${job.lane}/`)) found.push(`${id} is in lane ${job.lane}`)
  if (attempts < 0 || attempts > most) found.push(`${id} has ${attempts} attempts of ${most}`)
  if (token !== null && !token.startsWith(`${job.lease_epoch}:`))
    found.push(`${id} has token ${token} not of its epoch`)
  return found
}

function archiveFaults({ id, state, attempts, max_attempts: most }: ArchiveRow): string[] {
  const found: string[] = []
  if (!TERMINAL.includes(state)) found.push(`${id} is in the archive and ${state}`)
  if (attempts < 0 || attempts > most) found.push(`${id} ended with ${attempts} attempts of ${most}`)
  return found
}

function attemptFaults({ jobs, archive, attempts, lines, keys }: Tables): string[] {
  const found: string[] = []
  // A job is marked as recorded for either.
  const logging = new Set(lines.map(({ job_seq: seq }) => seq))
  // A store that keeps keys apart also keeps the attempts of ended jobs in their records.
  const owners = new Map((keys === null ? [...jobs, ...archive] : jobs).map((job) => [job.seq, job]))
  const counts = new Map<number, number>()
  for (const { job_seq: seq, lease_epoch: epoch } of attempts) {
    const owner = owners.get(seq)
    counts.set(seq, (counts.get(seq) ?? 0) + 1)
    if (owner === undefined) found.push(`an attempt of job ${seq}, which is not there`)
    else if (!owner.recorded) found.push(`${owner.id} has attempts and does not know`)
    else if (epoch > owner.lease_epoch) found.push(`${owner.id} has an attempt of ${epoch} after ${owner.lease_epoch}`)
  }
  for (const { seq, id, recorded } of jobs)
    if (recorded && !counts.has(seq) && !logging.has(seq)) found.push(`${id} should have attempts or lines on record`)
  for (const { seq, id, recorded, history } of archive)
    if (recorded && !logging.has(seq) && history + (counts.get(seq) ?? 0) === 0)
      found.push(`${id} ended and has lost its attempts`)
  return found
}

function keyFaults({ jobs, archive, keys }: Tables): string[] {
  if (keys === null) return []
  const found: string[] = []
  const owners = new Map(keys.map(({ ns, lane, key, id }) => [`${ns} ${lane} ${key}`, id]))
  for (const { ns, lane, id, idempotency_key: key } of [...jobs, ...archive]) {
    if (key === null) continue
    const name = `${ns} ${lane} ${key}`
    if (owners.get(name) !== id) found.push(`the key ${key} of ${id} leads to ${owners.get(name) ?? 'nothing'}`)
    owners.delete(name)
  }
  for (const [name, id] of owners) found.push(`the key ${name} leads to ${id}, which is not there`)
  return found
}

function counterFaults({ archive, counters }: Tables): string[] {
  if (counters === null) return []
  const left = new Map<string, number>()
  const add = (name: string, count: number): Map<string, number> => left.set(name, (left.get(name) ?? 0) + count)
  for (const { ns, lane, state, jobs } of counters) add(`${ns} ${lane} ${state}`, jobs)
  for (const { ns, lane, state } of archive) add(`${ns} ${lane} ${state}`, -1)
  return [...left].flatMap(([name, count]) => (count === 0 ? [] : [`the counter of ${name} is off by ${count}`]))
}
