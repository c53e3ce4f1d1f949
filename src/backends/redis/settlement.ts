/**
 * Settlements as the scripts take them: the last notes of their attempts, then three sections: completed and not kept (the fast one), completed and kept, everything
 * else. Verdicts come back in the order of the sections and are put back into the order asked.
 */
import type { Payload } from '../../job.ts'
import type { Note, Settlement, Verdict } from '../protocol/index.ts'
import { noteArguments, noteBytes } from './note.ts'
import { outcomeOf, termsText } from './record.ts'
import type { RedisArgument } from './servers.ts'
import { BATCH } from './session.ts'

export interface LocalSettlement {
  readonly item: Settlement
  readonly local: string
  readonly index: number
}

export const VERDICTS: Readonly<Record<string, Verdict>> = {
  a: 'applied',
  s: 'alreadyApplied',
  c: 'cancelled',
  l: 'leaseLost',
  g: 'gone',
}

const text = (value: number | null): RedisArgument => (value === null ? '' : value)

type Completion = Extract<Settlement, { kind: 'complete' }>

function outputArgument(output: Payload | null): RedisArgument {
  if (output === null) return ''
  if (typeof output === 'string') return output === '' ? '=u' : `=j${output}`
  return Buffer.concat([Buffer.from('=b'), output])
}

/** What a settlement that is no completion costs, in bytes of output that cost the same. */
const OTHER_BYTES = BATCH.bytes / BATCH.otherSettlements

/** How much a settlement adds to a call. */
export function settlementBytes({ item }: LocalSettlement): number {
  const noted = item.note === undefined ? 0 : noteBytes(item.note)
  if (item.kind !== 'complete') return OTHER_BYTES + noted
  return (item.output === null ? 0 : item.output.length) + noted
}

interface KeptGroup {
  readonly keepMs: number | null
  readonly keepOutputMs: number | null
  readonly items: { readonly settlement: Completion; readonly local: string }[]
}

/** Arguments of the sections, and for each verdict in their order its place in the whole. */
export class SettlementSections {
  readonly order: number[] = []
  private readonly notes: RedisArgument[] = []
  private noted = 0
  private readonly forgotten: RedisArgument[] = []
  private readonly kept = new Map<string, KeptGroup>()
  private readonly keptOrder = new Map<string, number[]>()
  private readonly others: RedisArgument[] = []
  private readonly othersOrder: number[] = []

  constructor(settlements: readonly LocalSettlement[]) {
    for (const { item, local, index } of settlements) {
      if (item.note !== undefined) this.addNote(item, item.note, local)
      if (item.kind !== 'complete') this.addOther(item, local, index)
      else if (item.keepMs === 0) {
        this.forgotten.push(local, item.token)
        this.order.push(index)
      } else this.addKept(item, local, index)
    }
    for (const indexes of this.keptOrder.values()) this.order.push(...indexes)
    this.order.push(...this.othersOrder)
  }

  private addNote({ token }: Settlement, note: Note, local: string): void {
    this.notes.push(...noteArguments(note, { local, token }))
    this.noted += 1
  }

  private addKept(settlement: Completion, local: string, index: number): void {
    const { keepMs, keepOutputMs } = settlement
    const key = `${keepMs} ${keepOutputMs}`
    let group = this.kept.get(key)
    if (group === undefined) {
      group = { keepMs, keepOutputMs, items: [] }
      this.kept.set(key, group)
      this.keptOrder.set(key, [])
    }
    group.items.push({ settlement, local })
    this.keptOrder.get(key)?.push(index)
  }

  private addOther(item: Exclude<Settlement, Completion>, local: string, index: number): void {
    this.others.push(...otherArguments(item, local))
    this.othersOrder.push(index)
  }

  /** How many are in each section: notes, those not kept, groups of kept ones, others. */
  get counts(): readonly [number, number, number, number] {
    return [this.noted, this.forgotten.length / 2, this.kept.size, this.othersOrder.length]
  }

  get arguments(): readonly RedisArgument[] {
    if (this.kept.size === 0 && this.others.length === 0 && this.noted === 0) return this.forgotten
    const kept = [...this.kept.values()].flatMap(({ keepMs, keepOutputMs, items }) => [
      text(keepMs),
      text(keepOutputMs),
      items.length,
      ...items.flatMap(({ settlement: { token, durationMs, output }, local }) => [
        local,
        token,
        durationMs,
        outputArgument(output),
      ]),
    ])
    return [...this.notes, ...this.forgotten, ...kept, ...this.others]
  }
}

/** Failure of an attempt that was given back while its cancellation was asked for. */
const CANCELLED_ON_REQUEST = JSON.stringify({ code: 'CANCELLED', message: 'cancelled on request' })

/** The ten arguments of one settlement in the last section. */
export function otherArguments(item: Exclude<Settlement, Completion>, local: string): readonly RedisArgument[] {
  const failure = item.kind === 'release' ? CANCELLED_ON_REQUEST : JSON.stringify(item.failure)
  return [
    item.kind,
    local,
    item.token,
    text(item.keepMs),
    item.durationMs,
    outcomeOf(item),
    'crashes' in item ? item.crashes : '',
    failure,
    item.kind === 'retry' ? termsText(item) : '',
    item.kind === 'retry' ? item.delayMs : item.kind === 'dead' ? item.code : '',
  ]
}
