/** `ctx.log`: a child of the process's logger that also gives each line from a level on to whoever stores it. */
import type { JobLogger } from '../contract.ts'
import type { Logger } from '../telemetry.ts'
import { LOG_LEVELS, type LogLevel } from './log-line.ts'

/** Told of each line that is to be stored. Must not throw. */
export type OnLine = (level: LogLevel, fields: unknown, message: unknown) => void

/** `level`: the lowest that is stored. */
export function createJobLog(child: Logger, level: LogLevel, onLine: OnLine): JobLogger {
  return storing(child, { from: LOG_LEVELS.indexOf(level), onLine, bindings: {} })
}

interface Storing {
  readonly from: number
  readonly onLine: OnLine
  /** Of children that the handler makes. */
  readonly bindings: object
}

function storing(child: Logger, how: Storing): JobLogger {
  const { from, onLine, bindings } = how
  const hasBindings = Object.keys(bindings).length > 0
  const bound = (fields: unknown): unknown => {
    if (!hasBindings || (typeof fields === 'object' && fields === null)) return fields
    if (fields instanceof Error) return { ...bindings, err: fields }
    return typeof fields === 'object' ? { ...bindings, ...fields } : bindings
  }
  const own = Object.fromEntries(
    LOG_LEVELS.map((level, index) => [
      level,
      (...said: [object, string?]): void => {
        child[level](...said)
        const [fields, message] = said as readonly unknown[]
        if (index >= from) onLine(level, bound(fields), hasBindings ? (message ?? messageOf(fields)) : message)
      },
    ]),
  )
  // Everything else of the logger is there as before.
  return Object.assign(Object.create(child), own, {
    child: (more: object, ...rest: []) =>
      storing(child.child(more, ...rest), { ...how, bindings: { ...bindings, ...more } }),
  }) as JobLogger
}

const messageOf = (fields: unknown): unknown => (typeof fields === 'string' ? fields : undefined)
