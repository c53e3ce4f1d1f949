/**
 * The lifecycle of a job: one XState machine, and the only place where a move is defined.
 * The table that the hot path and the memory store use is derived from it when this file loads; `docs/lifecycle.md` is
 * drawn from it. `new` is not a state of a stored job: it stands for the moment before the store accepts it.
 */
import { setup } from 'xstate'
import type { JobState } from '../job.ts'

export type JobEvent =
  | { readonly type: 'hold' }
  | { readonly type: 'schedule' }
  | { readonly type: 'queue' }
  | { readonly type: 'due' }
  | { readonly type: 'claim' }
  | { readonly type: 'complete' }
  | { readonly type: 'retry' }
  | { readonly type: 'release' }
  | { readonly type: 'expire' }
  | { readonly type: 'cancel' }
  | { readonly type: 'die' }

export type JobEventType = JobEvent['type']
export type MachineState = JobState | 'new'

export const jobMachine = setup({ types: { events: {} as JobEvent } }).createMachine({
  id: 'job',
  initial: 'new',
  states: {
    new: { on: { hold: 'waiting', schedule: 'scheduled', queue: 'queued' } },
    waiting: { on: { queue: 'queued', schedule: 'scheduled', cancel: 'cancelled', die: 'dlq' } },
    scheduled: { on: { due: 'queued', cancel: 'cancelled', die: 'dlq' } },
    queued: { on: { claim: 'running', cancel: 'cancelled', die: 'dlq' } },
    running: {
      on: {
        complete: 'completed',
        retry: 'retry_wait',
        release: 'queued',
        expire: 'queued',
        cancel: 'cancelled',
        die: 'dlq',
      },
    },
    retry_wait: { on: { due: 'queued', cancel: 'cancelled', die: 'dlq' } },
    completed: { type: 'final' },
    cancelled: { type: 'final' },
    dlq: { type: 'final' },
  },
})

export type TransitionTable = Readonly<Record<MachineState, Readonly<Partial<Record<JobEventType, JobState>>>>>

function deriveTable(): TransitionTable {
  const rows = Object.entries(jobMachine.states).map(([state, node]) => {
    const moves = [...node.transitions].flatMap(([event, [first]]) => {
      const target = first?.target?.[0]
      return target === undefined ? [] : [[event, target.key]]
    })
    return [state, Object.freeze(Object.fromEntries(moves))]
  })
  return Object.freeze(Object.fromEntries(rows))
}

/** Every legal move, derived from the machine. */
export const TRANSITIONS: TransitionTable = deriveTable()

/** The state after `event`, or null when the move is not legal. */
export function nextState(state: MachineState, event: JobEventType): JobState | null {
  return TRANSITIONS[state][event] ?? null
}
