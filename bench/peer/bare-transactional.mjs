// The floor of a transaction with one row of the user's: begin, the insert and the commit by the driver itself.
import { prove, timed } from '../scenario/shared.mjs'
import { transactions } from '../scenario/user-rows.mjs'

export const name = 'bare insert and commit'
export const version = 'the driver of the store'
export const settings =
  'one row a transaction, a key, a unique id and a JSON body; SQLite in WAL mode with synchronous=FULL'

export async function run(options) {
  const user = await transactions(options)
  const result = await timed(options, async () => {
    for (let index = 0; index < options.jobs; index += 1) {
      await user.begin()
      await user.insert(index)
      await user.commit()
    }
  })
  prove('bare', await user.count(), options.jobs)
  await user.close()
  return result
}
