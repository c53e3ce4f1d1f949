/** Which rare turns of the protocol a run took, by name: a suite that never meets them proves little. */
import type { Fact, Run } from './history.ts'

function nameOf(fact: Fact): string | null {
  switch (fact.kind) {
    case 'settle':
      return `${fact.via === 'reap' ? 'reap' : fact.how} ${fact.verdict}`
    case 'renew':
      return `renew ${fact.outcome}`
    case 'progress':
      return `progress ${fact.verdict}`
    case 'cancel':
      return `cancel ${fact.outcome}`
    case 'promote':
      return `promote ${fact.outcome}`
    case 'grant':
      return fact.resend ? 'grant to a repeated claim' : null
    case 'enqueue':
      return fact.outcome === 'deduplicated' ? 'enqueue deduplicated' : null
    case 'bury':
      return 'buried by its deadline'
    default:
      return null
  }
}

export function reachedBy(run: Run): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const count = (name: string): void => {
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const created = new Set<string | null>()
  for (const fact of run.facts) {
    const name = nameOf(fact)
    if (name !== null) count(name)
    if (fact.kind === 'enqueue') created.add(fact.ref)
  }
  for (const { status, ref } of run.produced) {
    if (status === 'ambiguous')
      count(created.has(ref) ? 'ambiguous enqueue was done' : 'ambiguous enqueue was not done')
  }
  return counts
}
