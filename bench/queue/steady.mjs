// Jobs come at half the rate that this worker can do at most, for many minutes: what of it changes from the first minute to the worst.
// The minutes begin on an empty database. One line a minute goes to standard error.
import { prove } from '../scenario/shared.mjs'
import { quantile } from '../summary.mjs'
import { Flow } from './flow.mjs'
import { ClaimTimes } from './statement-times.mjs'

const PEAK_WARM_UP_MS = 5_000
const PEAK_MS = 15_000
const DRAIN_MS = 60_000
const MINUTE_MS = 60_000

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const total = (tables, key) => tables.reduce((sum, table) => sum + table[key], 0)

/** Jobs a second of a worker that always has work while a producer of the same process adds it. */
async function peakOf(module, options) {
  const queue = await module.open(options)
  const flow = await Flow.start(queue, options)
  flow.saturate()
  await sleep(PEAK_WARM_UP_MS)
  const before = { done: flow.done, at: performance.now() }
  await sleep(PEAK_MS)
  const perSecond = ((flow.done - before.done) / (performance.now() - before.at)) * 1_000
  await flow.drain(DRAIN_MS)
  prove('the peak', flow.done, flow.added)
  await queue.close()
  await options.server.clear()
  return perSecond
}

async function minuteOf(minute, { flow, claims, server }, before) {
  const claimTimes = claims.take()
  const ages = flow.takeAges()
  const tables = await server.tables()
  const wal = await server.walBytes()
  const figures = {
    minute,
    done: flow.done - before.done,
    waiting: flow.added - flow.done,
    claims: claimTimes.length,
    claimP50Ms: quantile(claimTimes, 0.5),
    claimP99Ms: quantile(claimTimes, 0.99),
    startP50Ms: quantile(ages, 0.5),
    startP99Ms: quantile(ages, 0.99),
    walBytes: wal - before.wal,
    tableBytes: total(tables, 'tableBytes'),
    indexBytes: total(tables, 'indexBytes'),
    live: total(tables, 'live'),
    dead: total(tables, 'dead'),
    tables: tables.filter(({ tableBytes, live, dead }) => tableBytes + live + dead > 0),
  }
  const { tables: _, ...line } = figures
  console.error(JSON.stringify(line))
  return { figures, after: { done: flow.done, wal } }
}

async function minutesOf(count, parts) {
  const minutes = []
  let before = { done: parts.flow.done, wal: await parts.server.walBytes() }
  const startedAt = performance.now()
  for (let minute = 1; minute <= count; minute += 1) {
    await sleep(Math.max(0, startedAt + minute * MINUTE_MS - performance.now()))
    const { figures, after } = await minuteOf(minute, parts, before)
    before = after
    minutes.push(figures)
  }
  return minutes
}

const bytesOf = ({ tableBytes, indexBytes }) => tableBytes + indexBytes

function comparison(minutes) {
  const [first] = minutes
  const worst = (key) => Math.max(...minutes.map((minute) => minute[key]))
  return {
    claimP99OfFirst: worst('claimP99Ms') / first.claimP99Ms,
    claimP50OfFirst: worst('claimP50Ms') / first.claimP50Ms,
    startP99OfFirst: worst('startP99Ms') / first.startP99Ms,
    bytesOfFirst: Math.max(...minutes.map(bytesOf)) / bytesOf(first),
    worstBytes: Math.max(...minutes.map(bytesOf)),
    worstDead: worst('dead'),
    slowestMinute: Math.min(...minutes.map(({ done }) => done)) / first.done,
  }
}

export async function steady(module, options) {
  const peak = options.rate === undefined ? await peakOf(module, options) : null
  const rate = options.rate ?? Math.floor(peak / 2)
  const claims = new ClaimTimes(await module.driver())
  const queue = await module.open(options)
  const flow = await Flow.start(queue, options)
  flow.pace(rate)
  const minutes = await minutesOf(options.minutes, { flow, claims, server: options.server })
  await flow.drain(DRAIN_MS)
  prove('steady', flow.done, flow.added)
  claims.stop()
  await queue.close()
  const compared = comparison(minutes)
  return {
    value: compared.claimP99OfFirst,
    extra: { ...compared, rate, ...(peak === null ? {} : { peak }) },
    detail: { minutes },
  }
}
