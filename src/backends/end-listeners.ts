/** Who of this process wants to know that jobs of a lane may have ended, and which lanes a message may have ended jobs of. */
import type { MessageType } from './protocol/index.ts'

export class EndListeners {
  private readonly lanes = new Map<string, Set<() => void>>()

  get isAwaited(): boolean {
    return this.lanes.size > 0
  }

  get awaited(): readonly string[] {
    return [...this.lanes.keys()]
  }

  /** Returns a function that removes the listener. */
  add(lane: string, listener: () => void): () => void {
    const listeners = this.lanes.get(lane) ?? new Set()
    this.lanes.set(lane, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.lanes.get(lane) === listeners) this.lanes.delete(lane)
    }
  }

  /** null: in any lane. */
  tell(lanes: Iterable<string> | null): void {
    for (const lane of lanes ?? [...this.lanes.keys()]) for (const listener of this.lanes.get(lane) ?? []) listener()
  }
}

const NONE: ReadonlySet<string> = new Set()

/** null: it may be any. */
export function lanesEnded(type: MessageType, request: object): ReadonlySet<string> | null {
  if (type === 'store.maintain') return null
  const { settlements, decisions, ids } = request as {
    readonly settlements?: readonly { readonly id: string }[]
    readonly decisions?: readonly { readonly id: string }[]
    readonly ids?: readonly string[]
  }
  if (type !== 'job.turn' && type !== 'lease.reap' && type !== 'job.cancel') return NONE
  const ended = (settlements ?? decisions)?.map(({ id }) => id) ?? ids ?? []
  return ended.length === 0 ? NONE : new Set(ended.map((id) => id.slice(0, id.indexOf('/'))))
}
