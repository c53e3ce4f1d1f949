/** What processes were told by their store before the power went, and what of it the store does not have any more. */
import type { Holdfast } from 'holdfast'
import type { Child } from '../child.ts'

export interface Acknowledged {
  readonly accepted: ReadonlySet<string>
  /** By job, the token of its last grant. */
  readonly granted: ReadonlyMap<string, string>
  readonly settled: ReadonlySet<string>
}

/** Of children that ran `settler.mjs`. */
export function acknowledgedBy(children: readonly Child[]): Acknowledged {
  const accepted = new Set<string>()
  const granted = new Map<string, string>()
  const settled = new Set<string>()
  for (const line of children.flatMap(({ lines }) => lines)) {
    const [what, id = '', rest = ''] = line.split(' ')
    if (what === 'accepted') accepted.add(id)
    if (what === 'granted') granted.set(id, rest)
    if (what === 'settled' && rest === 'applied') settled.add(id)
  }
  return { accepted, granted, settled }
}

/** Empty: all that was acknowledged is there. */
export async function missing(hf: Holdfast, { accepted, granted, settled }: Acknowledged): Promise<readonly string[]> {
  const found: string[] = []
  for (const id of accepted) {
    const job = await hf.get(id)
    const epoch = Number(granted.get(id)?.split(':')[0] ?? 0)
    if (job === null) found.push(`${id} was accepted and is gone`)
    else if (settled.has(id) && job.state !== 'completed') found.push(`${id} was completed and is ${job.state}`)
    else if ((job.leaseEpoch ?? 0) < epoch) found.push(`${id} was granted as ${epoch} and knows ${job.leaseEpoch}`)
  }
  return found
}
