/** How long and how many ended jobs are kept: read from the options of a client, resolved for a lane. Pure. */
import { DEFAULTS, type Duration, LIMITS, parseDuration, parseInteger, parseName, refuseUnknown } from './config.ts'
import { invalidArgument } from './errors.ts'

/** An age, or an age and the most to keep, whichever removes a job first. `{ count }` alone leaves the age as it is by default. */
export type Keep = Duration | 'forever' | { readonly age?: Duration | 'forever'; readonly count?: number }

/** What is not said is as for all lanes. */
export interface LaneRetentionOptions {
  /** Jobs that completed. Default 7 days. */
  readonly completed?: Keep
  /** Jobs that were cancelled. Default 7 days. */
  readonly cancelled?: Keep
  /** Dead letters stay until this says otherwise. */
  readonly dead?: Keep
}

export interface RetentionOptions extends LaneRetentionOptions {
  /** By lane. */
  readonly lanes?: Readonly<Record<string, LaneRetentionOptions>>
}

/** Ages in milliseconds; null: for ever; 0: not at all. Counts: the most of a state that a lane keeps, those that came first removed; null: any number. */
export interface LaneRetention {
  readonly completedMs: number | null
  readonly cancelledMs: number | null
  readonly deadMs: number | null
  readonly completedCount: number | null
  readonly cancelledCount: number | null
  readonly deadCount: number | null
}

export interface Retention extends LaneRetention {
  readonly lanes: ReadonlyMap<string, LaneRetention>
}

/** What counts for a lane. */
export function retentionIn(retention: Retention, lane: string): LaneRetention {
  return retention.lanes.size === 0 ? retention : (retention.lanes.get(lane) ?? retention)
}

const BASE: LaneRetention = {
  completedMs: DEFAULTS.keepCompletedMs,
  cancelledMs: DEFAULTS.keepCancelledMs,
  deadMs: null,
  completedCount: null,
  cancelledCount: null,
  deadCount: null,
}

const STATES = new Set(['completed', 'cancelled', 'dead'])
const OPTIONS = new Set([...STATES, 'lanes'])
const KEEP = new Set(['age', 'count'])

export interface RetentionSettings {
  readonly keepCompleted?: Duration | 'forever'
  readonly keepCancelled?: Duration | 'forever'
  readonly keepDead?: Duration | 'forever'
  readonly retention?: RetentionOptions
}

/** `keepCompleted` is the short form of `retention.completed`, and so on; each may be said once. Throws INVALID_ARGUMENT, INVALID_DURATION or INVALID_NAME. */
export function parseRetention({
  keepCompleted,
  keepCancelled,
  keepDead,
  retention = {},
}: RetentionSettings): Retention {
  refuseUnknown(retention, OPTIONS, 'retention')
  const { lanes = {}, ...long } = retention
  const short = { completed: keepCompleted, cancelled: keepCancelled, dead: keepDead }
  for (const [state, name] of [
    ['completed', 'keepCompleted'],
    ['cancelled', 'keepCancelled'],
    ['dead', 'keepDead'],
  ] as const) {
    if (short[state] !== undefined && long[state] !== undefined)
      throw invalidArgument(name, `give either ${name} or retention.${state}`)
  }
  const named = parseLane(BASE, { completed: keepCompleted, cancelled: keepCancelled, dead: keepDead }, NAME_OF_SHORT)
  const all = parseLane(named, long, (state) => `retention.${state}`)
  if (typeof lanes !== 'object' || lanes === null) throw invalidArgument('retention.lanes', 'expected an object')
  const byLane = Object.entries(lanes).map(([lane, options]): [string, LaneRetention] => {
    const field = `retention.lanes.${lane}`
    refuseUnknown(options, STATES, field)
    return [parseName(lane, 'retention.lanes'), parseLane(all, options, (state) => `${field}.${state}`)]
  })
  return { ...all, lanes: new Map(byLane) }
}

type KeptState = keyof LaneRetentionOptions
const NAME_OF_SHORT = (state: KeptState): string => `keep${state[0]?.toUpperCase() ?? ''}${state.slice(1)}`

type Given = { readonly [S in KeptState]?: Keep | undefined }

function parseLane(base: LaneRetention, given: Given, nameOf: (state: KeptState) => string): LaneRetention {
  const completed = parseKeep(given.completed, nameOf('completed'), {
    ms: base.completedMs,
    count: base.completedCount,
  })
  const cancelled = parseKeep(given.cancelled, nameOf('cancelled'), {
    ms: base.cancelledMs,
    count: base.cancelledCount,
  })
  const dead = parseKeep(given.dead, nameOf('dead'), { ms: base.deadMs, count: base.deadCount })
  return {
    completedMs: completed.ms,
    cancelledMs: cancelled.ms,
    deadMs: dead.ms,
    completedCount: completed.count,
    cancelledCount: cancelled.count,
    deadCount: dead.count,
  }
}

interface Kept {
  readonly ms: number | null
  readonly count: number | null
}

function parseKeep(value: Keep | undefined, field: string, base: Kept): Kept {
  if (value === undefined) return base
  if (typeof value !== 'object' || value === null) return { ms: parseAge(value, field), count: null }
  refuseUnknown(value, KEEP, field)
  const { age, count } = value
  return {
    ms: age === undefined ? base.ms : parseAge(age, `${field}.age`),
    count: count === undefined ? base.count : parseInteger(count, `${field}.count`, 0, LIMITS.keepCount),
  }
}

const parseAge = (value: Duration | 'forever', field: string): number | null =>
  value === 'forever' ? null : parseDuration(value, field, 'forever')
