/** Commands about the store as a whole: `maintain`, `migrate`; and `bench`, which lives elsewhere. */
import { UsageError } from '../arguments.ts'
import { type Command, storeUrl, withStore } from '../command.ts'
import { maskStoreUrl } from '../text.ts'

export const maintainCommand: Command = {
  name: 'maintain',
  usage: 'maintain',
  summary: 'take back expired leases and remove what is kept no longer',
  options: {},
  words: [0, 0],
  async run(context) {
    const done = await withStore(context, (store) => store.maintain())
    context.output.result(done, () => {
      context.output.fields(Object.entries(done).map(([name, count]) => [name, String(count)]))
    })
    return 0
  },
}

export const migrateCommand: Command = {
  name: 'migrate',
  usage: 'migrate',
  summary: 'bring the store to the schema of this release',
  options: {},
  words: [0, 0],
  async run(context) {
    const { store } = await withStore(context, (each) => each.health(), { mayCreate: true })
    if (!store.ok) throw new Error(store.error ?? 'the store does not answer')
    const { schemaVersion = null } = store.details
    const url = maskStoreUrl(storeUrl(context))
    context.output.result({ url, store: store.name, schemaVersion }, () => {
      const version = schemaVersion === null ? 'has no schema' : `is at schema version ${schemaVersion}`
      context.output.line(`the ${store.name} store ${version}`)
    })
    return 0
  },
}

export const benchCommand: Command = {
  name: 'bench',
  usage: 'bench',
  summary: 'measure (in a checkout of the project: npm run bench)',
  options: {},
  words: [0, 0],
  run: () =>
    Promise.reject(
      new UsageError('benchmarks are not part of the package; in a checkout of the project: npm run bench'),
    ),
}
