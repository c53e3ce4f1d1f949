// What NOTIFY costs (PostgreSQL): 16 producers (--concurrency) with a connection of their own each enqueue one job after another, with
// notifications on and off, beside the same producers that insert a row each into a bare table; in turn, --seconds (default 30) for each.
import pg from 'pg'
import * as holdfast from '../queue/holdfast.mjs'
import { inputOf, perSecond } from './shared.mjs'

export const unit = { name: 'of the rate of plain inserts, without notifications', higherIsBetter: true }
export const defaults = { concurrency: 16, seconds: 30, runs: 1, warmUp: false }
export const extra = {
  ofPlainNotified: { name: 'of the rate of plain inserts, with notifications', higherIsBetter: true },
  plain: { name: 'plain inserts/s' },
  quiet: { name: 'enqueues/s without notifications', higherIsBetter: true },
  notified: { name: 'enqueues/s with notifications', higherIsBetter: true },
}
const ROUNDS = 3

/** Each makes one producer: a call that stores one job, and how to end it. */
const PRODUCERS = {
  async plain({ url }) {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const insert = { name: 'insert', text: 'INSERT INTO bench.plain (id, payload) VALUES ($1, $2)' }
    let next = 0
    return {
      add: (input) => client.query({ ...insert, values: [`${process.pid}/${next++}`, JSON.stringify(input)] }),
      close: () => client.end(),
    }
  },
  quiet: (options) => holdfast.open({ ...options, url: holdfast.withoutNotifications(options.url) }),
  notified: (options) => holdfast.open(options),
}

async function rateOf(kind, options) {
  const producers = await Promise.all(Array.from({ length: options.concurrency }, () => PRODUCERS[kind](options)))
  await Promise.all(producers.map((producer) => producer.add(inputOf(options.payloadBytes, 0))))
  const startedAt = performance.now()
  const until = startedAt + (options.seconds * 1_000) / ROUNDS
  let done = 0
  const produce = async (producer) => {
    while (performance.now() < until) {
      await producer.add(inputOf(options.payloadBytes, done))
      done += 1
    }
  }
  await Promise.all(producers.map(produce))
  const rate = perSecond(done, performance.now() - startedAt)
  await Promise.all(producers.map((producer) => producer.close()))
  return rate
}

export async function run(options) {
  await options.server.query('CREATE SCHEMA bench')
  await options.server.query(
    'CREATE TABLE bench.plain (seq bigserial PRIMARY KEY, id text NOT NULL, payload json NOT NULL)',
  )
  // Notifications only cost when somebody listens: a worker of another lane does.
  const listener = await holdfast.open(options)
  const worker = await listener.work(1, async () => {}, ['elsewhere'])
  await worker.start()
  const rates = { plain: 0, quiet: 0, notified: 0 }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const kind of Object.keys(rates)) rates[kind] += (await rateOf(kind, options)) / ROUNDS
  }
  await worker.stop()
  await listener.close()
  return {
    value: rates.quiet / rates.plain,
    extra: { ofPlainNotified: rates.notified / rates.plain, ...rates },
  }
}
