/**
 * What running jobs say of themselves: progress in the row of the job, lines in a table of their own, so that the hot row stays
 * small. `recorded` of a job says that there is something of it beside its row. Lines have numbers, so that a note may come twice.
 */
import type { LeaseRef, Note, Reply, Request, Settlement, StoredLine, Verdict } from '../protocol/index.ts'
import { byId, change, missed, type Plan, type Row, read, write } from './plan.ts'
import type { FoundRow } from './settle.ts'

type LeasedNote = LeaseRef & Note

export function* note({ notes }: Request<'job.note'>): Plan<Reply<'job.note'>> {
  const applied = yield* store(notes)
  const without = notes.filter((_, index) => applied[index] !== true)
  const known = yield* knownIds(without.map(({ id }) => id))
  const verdicts = notes.map(({ id }, index): Verdict => {
    if (applied[index] === true) return 'applied'
    return known.has(id) ? 'leaseLost' : 'gone'
  })
  return { verdicts }
}

export function* knownIds(ids: readonly string[]): Plan<ReadonlySet<string>> {
  const rows = yield* read<FoundRow>('job_find', byId(ids))
  return new Set(rows.map(({ id }) => id))
}

export const leaseName = ({ id, token }: LeaseRef): string => `${id} ${token}`

/** What attempts that end now had not told yet. */
export function* noteLast(settlements: readonly Settlement[]): Plan<void> {
  if (!settlements.some(({ note: last }) => last !== undefined)) return
  yield* store(settlements.flatMap(({ id, token, note: last }) => (last === undefined ? [] : [{ id, token, ...last }])))
}

/** Which of them were of a lease that holds its job. */
function* store(notes: readonly LeasedNote[]): Plan<readonly boolean[]> {
  // A statement for many rows changes each job once.
  if (new Set(notes.map(leaseName)).size < notes.length) {
    const each: boolean[] = []
    for (const one of notes) each.push(...(yield* store([one])))
    return each
  }
  const outcome = yield* write('job_note', notes.map(noteRow))
  const refused = new Set(missed(notes, outcome))
  const lines = notes.filter((one) => !refused.has(one)).flatMap(lineRows)
  yield* change('log_add', lines)
  return outcome.written
}

/** Old lines make room for the new ones. */
function noteRow({ id, token, progress, lines, keepLines }: LeasedNote): Row {
  return {
    id,
    token,
    progress,
    has_lines: lines.length > 0 ? 1 : 0,
    first_number: lines[0]?.number ?? 0,
    room: Math.max(0, keepLines - lines.length),
  }
}

const lineRows = ({ id, token, lines, keepLines }: LeasedNote): readonly Row[] =>
  (keepLines === 0 ? [] : lines.slice(-keepLines)).map(({ number, text }) => ({ id, token, number, line: text }))

interface LineRow {
  readonly id: string
  readonly lease_epoch: number
  readonly number: number
  readonly line: string
}

export function* logs({ queries }: Request<'job.logs'>): Plan<Reply<'job.logs'>> {
  const found: (readonly StoredLine[])[] = []
  for (const { id, after, limit } of queries) {
    const { leaseEpoch, number } = after ?? { leaseEpoch: -1, number: 0 }
    const rows = yield* read<LineRow>('log_list', [{ id, lease_epoch: leaseEpoch, number, limit }])
    found.push(rows.map((row) => ({ leaseEpoch: row.lease_epoch, number: row.number, text: row.line })))
  }
  return { logs: found }
}
