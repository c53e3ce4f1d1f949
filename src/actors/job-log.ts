/**
 * `ctx.log`: a child of the process's logger that also gives each line from a level on to whoever stores it. The logger is given
 * plain, bounded data: what it does with a value runs no code of the handler's objects. Whatever throws all the same costs the
 * line, not the attempt.
 */
import type { JobLogger } from '../contract.ts'
import { loggedFields, loggedLine, loggedText, loggedValue } from '../log-fields.ts'
import { LOG_LEVELS, type Logger, type LogLevel } from '../telemetry.ts'

/** Told of each line that is to be stored, as the handler gave it. */
export type OnLine = (level: LogLevel, fields: unknown, message: unknown) => void

/** `level`: the lowest that is stored; null: none is. */
export function createJobLog(child: Logger, level: LogLevel | null, onLine: OnLine): JobLogger {
  const from = level === null ? LOG_LEVELS.length : LOG_LEVELS.indexOf(level)
  return storing(child, { from, onLine, bindings: {} })
}

/** The place in `LOG_LEVELS` of the lowest level that the logger or the store wants. */
export function lowestWanted(logger: Logger, stored: LogLevel | null): number {
  const end = stored === null ? LOG_LEVELS.length : LOG_LEVELS.indexOf(stored)
  const lowest = LOG_LEVELS.findIndex((level, index) => index >= end || logger.isLevelEnabled(level))
  return lowest < 0 ? end : lowest
}

interface Storing {
  readonly from: number
  readonly onLine: OnLine
  /** Of children that the handler makes; plain data. */
  readonly bindings: Readonly<Record<string, unknown>>
}

function storing(child: Logger, how: Storing): JobLogger {
  const { from, onLine, bindings } = how
  const store = Object.keys(bindings).length > 0 ? boundTo(bindings, onLine) : onLine
  const own = Object.fromEntries(
    LOG_LEVELS.map((level, index) => [
      level,
      (...said: readonly unknown[]): void => {
        costsTheLine(() => write(child, level, said))
        if (index >= from) costsTheLine(() => store(level, said[0], said[1]))
      },
    ]),
  )
  // Everything else of the logger is there as before.
  return Object.assign(Object.create(child), own, {
    child: (more: unknown, ...rest: []) => {
      const fields = loggedFields(more)
      return storing(child.child(fields, ...rest), { ...how, bindings: { ...bindings, ...fields } })
    },
  }) as JobLogger
}

function costsTheLine(work: () => void): void {
  try {
    work()
  } catch {
    // A handler must not fail because of what it logs, or where.
  }
}

/** Arguments behind the message are those of its place-holders. */
function write(child: Logger, level: LogLevel, [first, second, ...rest]: readonly unknown[]): void {
  if (!child.isLevelEnabled(level)) return
  const log = child[level].bind(child) as (...said: unknown[]) => void
  if (typeof first === 'string') {
    const more = second === undefined && rest.length === 0 ? [] : [second, ...rest].map(loggedValue)
    log(loggedText(first), ...more)
    return
  }
  const { fields, message } = loggedLine(first, second)
  if (message === undefined) log(fields)
  else log(fields, message, ...rest.map(loggedValue))
}

const boundTo =
  (bindings: Storing['bindings'], onLine: OnLine): OnLine =>
  (level, first, second) => {
    const { fields, message } = loggedLine(first, second)
    onLine(level, { ...bindings, ...fields }, message)
  }
