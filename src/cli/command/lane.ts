/** Commands about lanes: `lanes`, `stats`, `pause`, `resume`. */
import { JOB_STATES, type LanePolicy, type LaneStats } from '../../index.ts'
import { type Command, type CommandContext, type ExitCode, withStore } from '../command.ts'
import type { Cell, Output } from '../output.ts'
import { stateCell } from '../story.ts'
import { showNumber, showSpan } from '../text.ts'
import { limitsLine, showPolicy } from './limit.ts'

export const lanesCommand: Command = {
  name: 'lanes',
  usage: 'lanes',
  summary: 'list lanes with the number of jobs in each state',
  options: {},
  words: [0, 0],
  async run(context) {
    const [lanes, policies] = await withStore(context, (store) => Promise.all([store.lanes(), store.policies()]))
    context.output.result({ lanes, policies }, () => showLanes(context.output, lanes, policies))
    return 0
  },
}

function showLanes(output: Output, lanes: readonly LaneStats[], policies: readonly LanePolicy[]): void {
  if (lanes.length === 0) {
    output.line('No lanes.')
    return
  }
  const states = JOB_STATES.filter((state) => lanes.some(({ counts }) => counts[state] > 0))
  const limits = new Map(policies.map((policy) => [policy.lane, limitsLine(policy)]))
  const isAnyLimited = [...limits.values()].some((line) => line !== '')
  const row = ({ lane, paused, counts, oldestReadyMs }: LaneStats): readonly Cell[] => [
    lane,
    paused ? { text: 'paused', style: 'yellow' } : 'open',
    ...states.map((state) => showNumber(counts[state])),
    oldestReadyMs === null ? '-' : showSpan(oldestReadyMs),
    ...(isAnyLimited ? [limits.get(lane) || '-'] : []),
  ]
  const head = ['LANE', 'IS', ...states.map((state) => state.toUpperCase()), 'OLDEST READY']
  output.table(isAnyLimited ? [...head, 'LIMITS'] : head, lanes.map(row))
}

export const statsCommand: Command = {
  name: 'stats',
  usage: 'stats [LANE]',
  summary: 'count the jobs of one lane, or of all',
  options: {},
  words: [0, 1],
  async run(context) {
    const { output } = context
    const [lane] = context.words
    const [stats, policy] = await withStore(context, (store) =>
      Promise.all([store.stats(lane), lane === undefined ? null : store.policy(lane)]),
    )
    output.result(policy === null ? stats : { ...stats, policy }, () => {
      output.table(
        ['STATE', 'JOBS'],
        JOB_STATES.map((state) => [stateCell(state), showNumber(stats.counts[state])]),
      )
      const age =
        stats.oldestReadyMs === null ? '' : `; the oldest ready job waits since ${showSpan(stats.oldestReadyMs)}`
      output.line(`${showNumber(stats.total)} in all${age}`)
      if (policy !== null && limitsLine(policy) !== '') showPolicy(output, policy)
    })
    return 0
  },
}

async function setPaused(context: CommandContext, paused: boolean): Promise<ExitCode> {
  const [lane = ''] = context.words
  await withStore(context, (store) => (paused ? store.pause(lane) : store.resume(lane)))
  context.output.result({ lane, paused }, () => context.output.line(`lane ${lane} is ${paused ? 'paused' : 'open'}`))
  return 0
}

export const pauseCommand: Command = {
  name: 'pause',
  usage: 'pause LANE',
  summary: 'stop taking jobs from a lane; what runs goes on',
  options: {},
  words: [1, 1],
  run: (context) => setPaused(context, true),
}

export const resumeCommand: Command = {
  name: 'resume',
  usage: 'resume LANE',
  summary: 'take jobs from a paused lane again',
  options: {},
  words: [1, 1],
  run: (context) => setPaused(context, false),
}
