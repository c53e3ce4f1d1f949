/** The lifecycle machine: its moves are the documented ones exactly, and the derived table agrees with a real XState actor. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createActor } from 'xstate'
import {
  type JobEventType,
  jobMachine,
  type MachineState,
  nextState,
  TRANSITIONS,
} from '#dist/src/actors/job-machine.js'
import { isTerminal, JOB_STATES } from '#dist/src/job.js'

const EVENTS: readonly JobEventType[] = [
  'hold',
  'schedule',
  'queue',
  'due',
  'claim',
  'complete',
  'retry',
  'release',
  'expire',
  'cancel',
  'die',
]

/** All legal moves, as the architecture page lists them. */
const LEGAL: Readonly<Record<MachineState, readonly string[]>> = {
  new: ['waiting', 'scheduled', 'queued'],
  waiting: ['queued', 'scheduled', 'cancelled', 'dlq'],
  scheduled: ['queued', 'cancelled', 'dlq'],
  queued: ['running', 'cancelled', 'dlq'],
  running: ['completed', 'retry_wait', 'queued', 'cancelled', 'dlq'],
  retry_wait: ['queued', 'cancelled', 'dlq'],
  completed: [],
  cancelled: [],
  dlq: [],
}

const states: readonly MachineState[] = ['new', ...JOB_STATES]

test('the moves are those of the table, no more and no fewer', () => {
  for (const state of states) {
    const reached = new Set(EVENTS.map((event) => nextState(state, event)).filter((next) => next !== null))
    expect([...reached].sort(), state).toEqual([...LEGAL[state]].sort())
  }
  expect(Object.keys(TRANSITIONS).sort()).toEqual([...states].sort())
})

test('7 each pair of states outside the table is refused', () => {
  const pairs = states
    .flatMap((from) => states.map((to) => ({ from, to })))
    .filter(({ from, to }) => !LEGAL[from].includes(to))
  expect(pairs.length).toBe(81 - Object.values(LEGAL).flat().length)
  for (const { from, to } of pairs) expect(EVENTS.map((event) => nextState(from, event))).not.toContain(to)
})

test('each event means one thing: the state it leads to does not depend on where it comes from', () => {
  for (const event of EVENTS) {
    const targets = new Set(states.map((state) => nextState(state, event)).filter((next) => next !== null))
    expect(targets.size, event).toBe(1)
  }
})

test('a real actor and the derived table agree for every sequence of events, and nothing leaves a terminal state', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 30 }), (events) => {
      const actor = createActor(jobMachine).start()
      let state: MachineState = 'new'
      for (const type of events) {
        const before: MachineState = state
        const next = nextState(state, type)
        expect(actor.getSnapshot().can({ type })).toBe(next !== null)
        // A stopped actor takes no events; it says so on the console for each.
        if (actor.getSnapshot().status === 'active') actor.send({ type })
        state = next ?? state
        expect(actor.getSnapshot().value).toBe(state)
        if (before !== 'new' && isTerminal(before)) expect(state).toBe(before)
      }
      expect(actor.getSnapshot().status).toBe(state !== 'new' && isTerminal(state) ? 'done' : 'active')
    }),
    { numRuns: 1_000 },
  )
})

test('every state can be reached, and a terminal one from each that is not', () => {
  const reachable = (from: MachineState): Set<MachineState> => {
    const seen = new Set<MachineState>([from])
    for (const state of seen) for (const event of EVENTS) seen.add(nextState(state, event) ?? state)
    return seen
  }
  expect(reachable('new').size).toBe(states.length)
  for (const state of JOB_STATES)
    expect(
      [...reachable(state)].some((end) => end !== 'new' && isTerminal(end)),
      state,
    ).toBe(true)
})
