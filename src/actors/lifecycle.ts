/**
 * The machine of one job in flight, in one of two forms that give the same states for every sequence of events (a property
 * test shows it): a step in the derived table, or a real XState actor when somebody inspects. Which one was measured:
 * see `docs/decisions/0002-machine-per-job.md`.
 */
import { createActor, type InspectionEvent } from 'xstate'
import type { Settlement } from '../backends/protocol/index.ts'
import { HoldfastError } from '../errors.ts'
import type { JobState } from '../job.ts'
import { type JobEventType, jobMachine, nextState } from './job-machine.ts'

/** Receives what the Stately inspector's `inspect` callback receives. */
export type Inspect = (event: InspectionEvent) => void

export interface Lifecycle {
  readonly state: JobState
  /** Makes a move; an illegal one is a broken invariant and throws INTERNAL. */
  send(event: JobEventType): JobState
}

const EVENT_OF = {
  complete: 'complete',
  retry: 'retry',
  dead: 'die',
  cancel: 'cancel',
  release: 'release',
  requeue: 'expire',
} as const satisfies Record<Settlement['kind'], JobEventType>

/** The move that a settlement makes. */
export const eventOf = (kind: Settlement['kind']): JobEventType => EVENT_OF[kind]

function illegal(state: JobState, event: JobEventType, id: string): HoldfastError {
  return new HoldfastError('INTERNAL', `illegal move ${event} from ${state}`, { details: { id } })
}

class TableLifecycle implements Lifecycle {
  state: JobState
  private readonly id: string

  constructor(id: string, state: JobState) {
    this.id = id
    this.state = state
  }

  send(event: JobEventType): JobState {
    const next = nextState(this.state, event)
    if (next === null) throw illegal(this.state, event, this.id)
    this.state = next
    return next
  }
}

class MachineLifecycle implements Lifecycle {
  private readonly id: string
  private readonly actor

  constructor(id: string, state: JobState, inspect: Inspect) {
    this.id = id
    this.actor = createActor(jobMachine, {
      id,
      snapshot: jobMachine.resolveState({ value: state }),
      inspect: (event) => inspect(event),
    })
    this.actor.start()
  }

  get state(): JobState {
    return this.actor.getSnapshot().value as JobState
  }

  send(event: JobEventType): JobState {
    const before = this.state
    if (!this.actor.getSnapshot().can({ type: event })) throw illegal(before, event, this.id)
    this.actor.send({ type: event })
    return this.state
  }
}

export function createLifecycle(id: string, state: JobState, inspect: Inspect | null): Lifecycle {
  return inspect === null ? new TableLifecycle(id, state) : new MachineLifecycle(id, state, inspect)
}
