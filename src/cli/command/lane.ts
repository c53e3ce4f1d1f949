/** Commands about lanes: `lanes`, `stats`, `pause`, `resume`. */
import { JOB_STATES, type LaneStats } from '../../index.ts'
import { type Command, type CommandContext, type ExitCode, withStore } from '../command.ts'
import type { Cell, Output } from '../output.ts'
import { stateCell } from '../story.ts'
import { showNumber, showSpan } from '../text.ts'

export const lanesCommand: Command = {
  name: 'lanes',
  usage: 'lanes',
  summary: 'list lanes with the number of jobs in each state',
  options: {},
  words: [0, 0],
  async run(context) {
    const lanes = await withStore(context, (store) => store.lanes())
    context.output.result({ lanes }, () => showLanes(context.output, lanes))
    return 0
  },
}

function showLanes(output: Output, lanes: readonly LaneStats[]): void {
  if (lanes.length === 0) {
    output.line('No lanes.')
    return
  }
  const states = JOB_STATES.filter((state) => lanes.some(({ counts }) => counts[state] > 0))
  const row = ({ lane, paused, counts, oldestReadyMs }: LaneStats): readonly Cell[] => [
    lane,
    paused ? { text: 'paused', style: 'yellow' } : 'open',
    ...states.map((state) => showNumber(counts[state])),
    oldestReadyMs === null ? '-' : showSpan(oldestReadyMs),
  ]
  output.table(['LANE', 'IS', ...states.map((state) => state.toUpperCase()), 'OLDEST READY'], lanes.map(row))
}

export const statsCommand: Command = {
  name: 'stats',
  usage: 'stats [LANE]',
  summary: 'count the jobs of one lane, or of all',
  options: {},
  words: [0, 1],
  async run(context) {
    const { output } = context
    const stats = await withStore(context, (store) => store.stats(context.words[0]))
    output.result(stats, () => {
      output.table(
        ['STATE', 'JOBS'],
        JOB_STATES.map((state) => [stateCell(state), showNumber(stats.counts[state])]),
      )
      const age =
        stats.oldestReadyMs === null ? '' : `; the oldest ready job waits since ${showSpan(stats.oldestReadyMs)}`
      output.line(`${showNumber(stats.total)} in all${age}`)
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
