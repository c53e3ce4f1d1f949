/** `holdfast workers`: who works on the store, and how lately each was heard of. */
import type { WorkerInfo } from '../../index.ts'
import { type Command, withStore } from '../command.ts'
import type { Cell, Output } from '../output.ts'
import { shorten, showNumber, showSpan } from '../text.ts'

const NAMES_CHARS = 60

export const workersCommand: Command = {
  name: 'workers',
  usage: 'workers',
  summary: 'list the workers with their lanes, their types and their last sign of life',
  options: {},
  words: [0, 0],
  async run(context) {
    const workers = await withStore(context, (store) => store.workers())
    context.output.result({ workers }, () => showWorkers(context.output, workers))
    return 0
  },
}

function showWorkers(output: Output, workers: readonly WorkerInfo[]): void {
  if (workers.length === 0) {
    output.line('No workers. One starts with: holdfast work MODULE')
    return
  }
  output.table(['WORKER', 'IS', 'RUNS', 'HEARD', 'UP', 'LANES', 'TYPES', 'VERSION', 'NODE'], workers.map(rowOf))
}

function rowOf(worker: WorkerInfo): readonly Cell[] {
  const { id, concurrency, running, lastBeatMs, startedAt, lanes, types, version, nodeVersion } = worker
  return [
    id,
    presenceOf(worker),
    `${showNumber(running)}/${showNumber(concurrency)}`,
    `${showSpan(lastBeatMs)} ago`,
    showSpan(Math.max(0, Date.now() - startedAt)),
    namesOf(lanes, worker.moreLanes),
    namesOf(types, worker.moreTypes),
    version,
    nodeVersion,
  ]
}

function presenceOf({ isAlive, isStopping }: WorkerInfo): Cell {
  if (!isAlive) return { text: 'silent', style: 'red' }
  return isStopping ? { text: 'stopping', style: 'yellow' } : { text: 'live', style: 'green' }
}

function namesOf(names: readonly string[], more: number): string {
  const listed = shorten(names.join(', '), NAMES_CHARS)
  return more === 0 ? listed : `${listed} and ${showNumber(more)} more`
}
