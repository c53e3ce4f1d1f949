/**
 * Lanes in which a message has ended attempts, so that a limit of theirs may permit another start: whoever waits for that is told, with
 * the poll behind it. Only lanes under limits are worth a hint.
 */
import type { JobId } from '../job.ts'
import type { MessageType, Reply, Request } from './protocol/index.ts'

const laneOf = (id: JobId): string => id.slice(0, id.indexOf('/'))

const NONE: ReadonlySet<string> = new Set()

export function freedLanes<T extends MessageType>(type: T, request: Request<T>, reply: Reply<T>): ReadonlySet<string> {
  switch (type) {
    case 'job.turn': {
      const { settlements } = request as Request<'job.turn'>
      return settlements.length === 0 ? NONE : new Set(settlements.map(({ id }) => laneOf(id)))
    }
    case 'lease.reap': {
      const { decisions } = request as Request<'lease.reap'>
      return decisions.length === 0 ? NONE : new Set(decisions.map(({ id }) => laneOf(id)))
    }
    case 'job.cancel': {
      const { ids, force } = request as Request<'job.cancel'>
      const { outcomes } = reply as Reply<'job.cancel'>
      return force ? new Set(ids.filter((_, index) => outcomes[index] === 'cancelled').map(laneOf)) : NONE
    }
    default:
      return NONE
  }
}

/** The lanes under limits that the claims of this process have met. */
export class LimitedLanes {
  private readonly lanes = new Set<string>()

  /** Takes note of a turn; then gives the lanes in which somebody may wait for what a message has ended. */
  freedBy<T extends MessageType>(type: T, request: Request<T>, reply: Reply<T>): readonly string[] {
    if (type === 'job.turn') this.note(request as Request<'job.turn'>, reply as Reply<'job.turn'>)
    // Nobody else tells of what was taken by force or reaped, and both are rare.
    const isAnyLane = type !== 'job.turn'
    return [...freedLanes(type, request, reply)].filter((lane) => isAnyLane || this.lanes.has(lane))
  }

  private note({ claims }: Request<'job.turn'>, { grants }: Reply<'job.turn'>): void {
    claims.forEach(({ lanes }, index) => {
      const limited = grants[index]?.limited
      if (limited === undefined && this.lanes.size === 0) return
      for (const lane of lanes) {
        if (limited?.includes(lane) === true) this.lanes.add(lane)
        else this.lanes.delete(lane)
      }
    })
  }
}
