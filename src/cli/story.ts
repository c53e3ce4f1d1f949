/** Tells an explanation as a short story: what the job is, what happened to it and when, and what comes next. */
import type { ExplainEvent, Explanation, NextAction } from '../index.ts'
import type { Cell, Output, Style } from './output.ts'
import { shorten, showSpan } from './text.ts'

const ERROR_CHARS = 160
/** A job that was tried more often is told by its first and last events. */
const EVENTS_HEAD = 12
const EVENTS_TAIL = 8

const STATE_STYLE: Readonly<Record<string, Style>> = {
  completed: 'green',
  succeeded: 'green',
  dlq: 'red',
  failed: 'red',
  crashed: 'red',
  running: 'cyan',
  retry_wait: 'yellow',
  scheduled: 'yellow',
}

export const stateCell = (state: string): Cell => {
  const style = STATE_STYLE[state]
  return style === undefined ? state : { text: state, style }
}

export function tellStory(output: Output, story: Explanation): void {
  output.line({ text: story.type, style: 'bold' }, '  ', { text: story.jobId, style: 'id' })
  output.line('  ', stateCell(story.state), `: ${story.summary}`)
  const startedAt = story.events[0]?.at ?? 0
  for (const event of pickEvents(story.events)) {
    if (event === null) output.line({ text: '    …', style: 'dim' })
    else output.line({ text: `  ${sinceStart(event.at - startedAt)}  `, style: 'dim' }, ...tellEvent(event))
  }
  const { totalMs, processingMs } = story.durations
  const isOver = story.nextAction.kind === 'none' || story.nextAction.kind === 'replayable'
  output.line(
    `  ${isOver ? 'It took' : 'It is'} ${showSpan(totalMs)}${isOver ? '' : ' old'}, of which ${showSpan(processingMs)} in its handler.`,
  )
  if (story.replayOf !== null) output.line('  A replay of ', { text: story.replayOf, style: 'id' })
  for (const { kind, text } of story.blockers) output.line('  ', { text: `${kind}: `, style: 'yellow' }, text)
  output.line(`  Next: ${nextOf(story.nextAction, startedAt + totalMs)}`)
  if (story.suggestedAction !== null) output.line(`  Advice: ${story.suggestedAction}`)
}

function pickEvents(events: readonly ExplainEvent[]): readonly (ExplainEvent | null)[] {
  if (events.length <= EVENTS_HEAD + EVENTS_TAIL) return events
  return [...events.slice(0, EVENTS_HEAD), null, ...events.slice(-EVENTS_TAIL)]
}

const sinceStart = (ms: number): string => (ms <= 0 ? 'at once' : `+${showSpan(ms)}`).padStart(9)

function tellEvent(event: ExplainEvent): readonly Cell[] {
  const error = event.error === null ? '' : `: ${event.error.code}: ${shorten(event.error.message, ERROR_CHARS)}`
  const attempt = `attempt ${event.attempt ?? '?'}`
  switch (event.kind) {
    case 'enqueued':
      return [`enqueued ${new Date(event.at).toISOString()}, ${event.state}`]
    case 'attempt_started':
      return [`${attempt} starts on ${event.workerId ?? 'a worker'}`]
    case 'attempt_ended':
      return [
        `${attempt} `,
        stateCell(event.state),
        `${event.durationMs === null ? '' : ` after ${showSpan(event.durationMs)}`}${error}`,
      ]
    case 'ended':
      return ['the job is ', stateCell(event.state)]
    default:
      return event.kind satisfies never
  }
}

/** `now` is that of the store. */
function nextOf(action: NextAction, now: number): string {
  switch (action.kind) {
    case 'wait_for_worker':
      return 'it waits for a worker.'
    case 'run_at':
      return `it becomes ready at ${new Date(action.at).toISOString()}.`
    case 'retry_at':
      return `it is tried again at ${new Date(action.at).toISOString()}.`
    case 'running':
      return runsOn(action, now)
    case 'wait_for_parent':
      return 'it waits for its parent to complete.'
    case 'replayable':
      return 'nothing by itself; it can be replayed.'
    case 'none':
      return 'nothing; it has ended.'
    default:
      return action satisfies never
  }
}

const OWNER = {
  alive: 'which is heard of',
  silent: 'which is not heard of any more',
  unknown: 'which the store does not know',
}

function runsOn(
  { workerId, owner, startedAt, leaseExpiresAt }: Extract<NextAction, { kind: 'running' }>,
  now: number,
): string {
  const since = startedAt === null ? '' : ` since ${new Date(startedAt).toISOString()}`
  const end = leaseExpiresAt === null ? '' : new Date(leaseExpiresAt).toISOString()
  const lease =
    leaseExpiresAt === null ? '' : `; its lease ${leaseExpiresAt < now ? 'ran out at' : 'lasts until'} ${end}`
  return `it runs on ${workerId}${since}, ${OWNER[owner]}${lease}.`
}
