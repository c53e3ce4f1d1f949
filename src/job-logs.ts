/** The stored lines of `ctx.log` as users read them. */
import type { LinePlace, LogQuery, StoredLine } from './backends/protocol/index.ts'
import { DEFAULTS, LIMITS, parseInteger, refuseUnknown } from './config.ts'
import { HoldfastError, invalidArgument } from './errors.ts'
import type { JobId } from './job.ts'

/** One line. */
export interface LogLine {
  /** Its place: give it as `after` for what comes behind it. */
  readonly cursor: string
  /** When it was written, by the clock of the worker, in epoch milliseconds. */
  readonly at: number
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  readonly msg: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly attempt: number
  /** More was said than a line may hold; 2 kB in all. */
  readonly truncated: boolean
}

export interface LogOptions {
  /** The `cursor` of the last line that is known. */
  readonly after?: string | null
  /** 1 to 500, default 100. */
  readonly limit?: number
}

const LOG_OPTIONS = new Set(['after', 'limit'])
const CURSOR = /^(\d{1,16})\.(\d{1,16})$/

export function queryOf(id: JobId, options: LogOptions): LogQuery {
  refuseUnknown(options, LOG_OPTIONS, 'options')
  const { after = null, limit = DEFAULTS.listLimit } = options
  return {
    id,
    after: after === null ? null : parseCursor(after),
    limit: parseInteger(limit, 'limit', 1, LIMITS.listLimit),
  }
}

function parseCursor(value: unknown): LinePlace {
  const match = typeof value === 'string' ? CURSOR.exec(value) : null
  if (match === null) throw invalidArgument('after', 'expected the cursor of a line')
  return { leaseEpoch: Number(match[1]), number: Number(match[2]) }
}

export function toLogLine({ leaseEpoch, number, text }: StoredLine): LogLine {
  try {
    const { at, level, msg, fields, attempt, truncated = false } = JSON.parse(text) as LogLine
    return { cursor: `${leaseEpoch}.${number}`, at, level, msg, fields, attempt, truncated }
  } catch (cause) {
    throw new HoldfastError('STORE_CORRUPT', 'a stored line of a log cannot be read', { cause })
  }
}
