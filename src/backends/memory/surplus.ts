/** The ended rows that are too many of their lane and state. Looks at every row: this store is for tests and small work. */
import { isTerminal, type TerminalState } from '../../job.ts'
import { countsIn } from '../kept.ts'
import type { KeepCounts } from '../protocol/index.ts'
import type { JobRow } from './row.ts'

/** Those that came first. */
export function surplusOf(rows: Iterable<JobRow>, counts: KeepCounts): readonly JobRow[] {
  const groups = new Map<string, JobRow[]>()
  for (const row of rows) {
    if (!isTerminal(row.state)) continue
    const key = `${row.state}\n${row.definition.lane}`
    const group = groups.get(key) ?? []
    groups.set(key, group)
    group.push(row)
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    const most = first === undefined ? null : mostOf(first, counts)
    if (most === null) return []
    return group.sort((a, b) => a.sequence - b.sequence).slice(0, Math.max(0, group.length - most))
  })
}

const mostOf = ({ state, definition }: JobRow, counts: KeepCounts): number | null =>
  countsIn(counts, definition.lane)?.[state as TerminalState] ?? null
