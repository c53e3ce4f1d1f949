// One transaction after another, each with one row of the user's and one job enqueued in it; the peer `bare` has only the row.
import { costs, inputOf, noop, open, prove, timed } from './shared.mjs'
import { transactions } from './user-rows.mjs'

export const unit = { name: 'transactions/s', higherIsBetter: true }
export const defaults = { concurrency: 1, jobs: { sqlite: 5_000, postgres: 5_000 } }
export const extra = costs

export async function run(options) {
  const hf = await open(options)
  const user = await transactions(options)
  const result = await timed(options, async () => {
    for (let index = 0; index < options.jobs; index += 1) {
      await user.begin()
      await user.insert(index)
      await hf.enqueueTx(user.client, noop, inputOf(options.payloadBytes, index))
      await user.commit()
    }
  })
  prove('transactional', (await hf.stats()).counts.queued, options.jobs)
  prove('transactional', await user.count(), options.jobs)
  await user.close()
  await hf.close()
  return result
}
