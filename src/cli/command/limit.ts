/** `holdfast limit LANE`: sets limits of a lane, takes them away, and shows how much of them is used. */
import type { EnqueueRate, LanePolicy, LanePolicyReport, RateLimit, StartRate } from '../../index.ts'
import { defined, type FlagValues, textFlag, UsageError } from '../arguments.ts'
import { type Command, withStore } from '../command.ts'
import type { Output } from '../output.ts'
import { showNumber, showSpan } from '../text.ts'

export const limitCommand: Command = {
  name: 'limit',
  usage:
    'limit LANE [--max-in-flight N] [--rate N/1m[/BURST]] [--per-key N] [--enqueue-rate N/1m]  (none takes one away)',
  summary: 'limit what runs, starts or is accepted in a lane; without flags show the limits',
  options: {
    'max-in-flight': { type: 'string' },
    rate: { type: 'string' },
    'per-key': { type: 'string' },
    'enqueue-rate': { type: 'string' },
  },
  words: [1, 1],
  async run(context) {
    const { flags, output } = context
    const [lane = ''] = context.words
    const policy = defined({
      maxInFlight: countFlag(flags, 'max-in-flight'),
      rate: rateFlag(flags, 'rate'),
      maxPerKey: countFlag(flags, 'per-key'),
      enqueueRate: rateFlag(flags, 'enqueue-rate'),
    })
    const report = await withStore(context, async (store) => {
      if (Object.keys(policy).length > 0) await store.setPolicy(lane, policy)
      return store.policy(lane)
    })
    output.result(report, () => showPolicy(output, report))
    return 0
  },
}

const NONE = 'none'

function countFlag(flags: FlagValues, name: string): number | null | undefined {
  const text = textFlag(flags, name)
  if (text === undefined || text === NONE) return text === undefined ? undefined : null
  if (!/^\d+$/.test(text))
    throw new UsageError(`--${name}: expected a whole number or 'none'; got ${JSON.stringify(text)}`)
  return Number(text)
}

function rateFlag(flags: FlagValues, name: 'rate' | 'enqueue-rate'): StartRate | null | undefined {
  const text = textFlag(flags, name)
  if (text === undefined || text === NONE) return text === undefined ? undefined : null
  const [, limit, per, burst] = /^(\d+)\/([\d.]+[a-z]*)(?:\/(\d+))?$/.exec(text) ?? []
  if (limit === undefined || per === undefined || (burst !== undefined && name !== 'rate')) {
    const shape = name === 'rate' ? '100/1m, 100/1m/20' : '100/1m'
    throw new UsageError(`--${name}: expected ${shape} or 'none'; got ${JSON.stringify(text)}`)
  }
  const span = (/^\d+$/.test(per) ? Number(per) : per) as EnqueueRate['per']
  return { limit: Number(limit), per: span, ...(burst === undefined ? {} : { burst: Number(burst) }) }
}

const showRate = ({ limit, perMs, burst }: RateLimit): string =>
  `${showNumber(limit)} in ${showSpan(perMs)}${burst === limit ? '' : `, ${showNumber(burst)} at once`}`

/** The limits of a lane in one line; empty: it has none. */
export function limitsLine({ maxInFlight, rate, maxPerKey, enqueueRate }: LanePolicy): string {
  return [
    maxInFlight === null ? [] : [`${showNumber(maxInFlight)} in flight`],
    rate === null ? [] : [`starts ${showRate(rate)}`],
    maxPerKey === null ? [] : [`${showNumber(maxPerKey)} per key`],
    enqueueRate === null ? [] : [`enqueues ${showRate(enqueueRate)}`],
  ]
    .flat()
    .join('; ')
}

export function showPolicy(output: Output, report: LanePolicyReport): void {
  output.line(`lane ${report.lane}: ${limitsLine(report) || 'no limits'}${report.paused ? '; paused' : ''}`)
  const tokens = report.tokens === null ? '' : `, ${showNumber(report.tokens)} more may start now`
  const enqueues = report.enqueueTokens === null ? '' : `, ${showNumber(report.enqueueTokens)} more are accepted now`
  output.line(`${showNumber(report.inFlight)} in flight${tokens}${enqueues}`)
  if (report.parked > 0) output.line(`${showNumber(report.parked)} set aside, waiting for their key`)
  if (report.fullKeys.length > 0) output.line(`keys at their limit: ${report.fullKeys.join(', ')}`)
  for (const { reason, count, lastAt } of report.throttles)
    output.line(`${reason}: ${showNumber(count)} times, last at ${new Date(lastAt).toISOString()}`)
}
