/** Commands that only read jobs: `jobs`, `dlq`, `job`, `logs`, `explain`. */
import {
  type Holdfast,
  HoldfastError,
  type JobDetail,
  type JobPage,
  type JobRecord,
  type JobState,
  type ListOptions,
  type LogLine,
} from '../../index.ts'
import { defined, numberFlag, textFlag } from '../arguments.ts'
import { type Command, type CommandContext, withStore } from '../command.ts'
import type { Cell } from '../output.ts'
import { stateCell, tellStory } from '../story.ts'
import { shorten, showSpan, toJson } from '../text.ts'

const LIST_FLAGS = {
  lane: { type: 'string' },
  type: { type: 'string' },
  limit: { type: 'string' },
  cursor: { type: 'string' },
} as const

const VALUE_CHARS = 2_000

export const jobsCommand: Command = {
  name: 'jobs',
  usage: 'jobs [--lane NAME] [--state STATE[,STATE]] [--type TYPE] [--limit N] [--cursor CURSOR]',
  summary: 'list jobs, newest first',
  options: { ...LIST_FLAGS, state: { type: 'string' } },
  words: [0, 0],
  async run(context) {
    const states = textFlag(context.flags, 'state')?.split(',')
    // The library checks the names of the states.
    showPage(context, await readPage(context, states as readonly JobState[] | undefined))
    return 0
  },
}

export const dlqCommand: Command = {
  name: 'dlq',
  usage: 'dlq [--lane NAME] [--type TYPE] [--limit N] [--cursor CURSOR]',
  summary: 'list the dead letters, newest first',
  options: LIST_FLAGS,
  words: [0, 0],
  async run(context) {
    showPage(context, await readPage(context, ['dlq']))
    return 0
  },
}

async function readPage(context: CommandContext, state: readonly JobState[] | undefined): Promise<JobPage> {
  const { flags } = context
  const options: ListOptions = defined({
    lane: textFlag(flags, 'lane'),
    state,
    type: textFlag(flags, 'type'),
    limit: numberFlag(flags, 'limit'),
    cursor: textFlag(flags, 'cursor'),
  })
  return withStore(context, (store) => store.list(options))
}

function showPage({ output }: CommandContext, page: JobPage): void {
  output.result(page, () => {
    if (page.jobs.length === 0) output.line('No jobs.')
    else output.table(['JOB', 'TYPE', 'STATE', 'ATTEMPTS', 'AGE', 'WHY'], page.jobs.map(toRow))
    if (page.cursor !== null) output.line({ text: `More: --cursor ${page.cursor}`, style: 'dim' })
  })
}

function toRow(job: JobRecord): readonly Cell[] {
  const why = job.dlqCode ?? job.lastFailure?.code ?? ''
  const message = job.lastFailure === null || job.state === 'completed' ? '' : job.lastFailure.message
  return [
    { text: job.id, style: 'id' },
    shorten(job.type, 40),
    stateCell(job.state),
    `${job.attempts}/${job.maxAttempts}`,
    showSpan(Math.max(0, Date.now() - job.createdAt)),
    shorten(message === '' ? why : `${why}: ${message}`, 60),
  ]
}

const notFound = (id: string): HoldfastError =>
  new HoldfastError('JOB_NOT_FOUND', `no job has the id ${JSON.stringify(shorten(id, 80))}`, { details: { jobId: id } })

export const jobCommand: Command = {
  name: 'job',
  usage: 'job ID',
  summary: 'show one job with its input, output and attempts',
  options: {},
  words: [1, 1],
  async run(context) {
    const [id = ''] = context.words
    const read = async (store: Holdfast) => ({ job: await store.get(id), attempts: await store.attempts(id) })
    const { job, attempts } = await withStore(context, read)
    if (job === null) throw notFound(id)
    context.output.result({ ...job, history: attempts }, () => showJob(context, job))
    return 0
  },
}

const instantCell = (ms: number | null): Cell => (ms === null ? '-' : new Date(ms).toISOString())
const valueCell = (value: unknown): Cell => shorten(toJson(value), VALUE_CHARS)

function showJob({ output }: CommandContext, job: JobDetail): void {
  output.fields([
    ['job', { text: job.id, style: 'id' }],
    ['type', job.type],
    ['lane', job.lane],
    ['state', stateCell(job.state)],
    ['attempts', `${job.attempts} of ${job.maxAttempts}`],
    ['priority', String(job.priority)],
    ['created', instantCell(job.createdAt)],
    ['due', instantCell(job.runAt)],
    ['deadline', instantCell(job.deadlineAt)],
    ['started', instantCell(job.startedAt)],
    ['finished', instantCell(job.finishedAt)],
    ['worker', job.workerId ?? '-'],
    ['key', job.idempotencyKey ?? '-'],
    ['trace', job.traceId ?? '-'],
    ['replay of', job.replayOf ?? '-'],
    ['metadata', job.metadata === null ? '-' : valueCell(job.metadata)],
    ['progress', job.progress === null ? '-' : valueCell(job.progress)],
    ['dead letter', job.dlqCode ?? '-'],
    ['last error', job.lastFailure === null ? '-' : `${job.lastFailure.code}: ${job.lastFailure.message}`],
    ['input', valueCell(job.input)],
    ['output', job.hasOutput ? valueCell(job.output) : '-'],
  ])
}

export const logsCommand: Command = {
  name: 'logs',
  usage: 'logs ID [--after CURSOR] [--limit N]',
  summary: 'show what the handlers of a job wrote to ctx.log',
  options: { after: { type: 'string' }, limit: { type: 'string' } },
  words: [1, 1],
  async run(context) {
    const [id = ''] = context.words
    const { flags, output } = context
    const options = defined({ after: textFlag(flags, 'after'), limit: numberFlag(flags, 'limit') })
    const lines = await withStore(context, async (store) => {
      const found = await store.logs(id, options)
      if (found.length === 0 && (await store.get(id)) === null) throw notFound(id)
      return found
    })
    output.result({ lines }, () => {
      if (lines.length === 0) output.line('No lines.')
      for (const line of lines) showLine(context, line)
    })
    return 0
  },
}

function showLine({ output }: CommandContext, { at, level, attempt, msg, fields, truncated }: LogLine): void {
  const hasFields = Object.keys(fields).length > 0
  const rest = [msg, hasFields ? toJson(fields) : '', truncated ? '(cut)' : ''].filter((text) => text !== '').join(' ')
  output.line({ text: `${new Date(at).toISOString()} `, style: 'dim' }, `${level} `, `#${attempt} `, rest)
}

export const explainCommand: Command = {
  name: 'explain',
  usage: 'explain ID',
  summary: 'tell what happened to a job, why, and what comes next',
  options: {},
  words: [1, 1],
  async run(context) {
    const [id = ''] = context.words
    const explanation = await withStore(context, (store) => store.explain(id))
    if (explanation === null) throw notFound(id)
    context.output.result(explanation, () => tellStory(context.output, explanation))
    return 0
  },
}
