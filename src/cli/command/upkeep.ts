/** Commands about the store as a whole: `maintain`, `migrate`; and `bench`, which lives elsewhere. */
import { migrate } from '../../index.ts'
import { textFlag, UsageError } from '../arguments.ts'
import { type Command, opening, storeUrl, withStore } from '../command.ts'
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
  usage: 'migrate [--dry-run] [--role NAME]',
  summary: 'bring the store to the schema of this release, or show the SQL that would',
  options: { 'dry-run': { type: 'boolean' }, role: { type: 'string' } },
  words: [0, 0],
  async run(context) {
    const { flags, output } = context
    const address = storeUrl(context)
    const [role, namespace, dryRun] = [textFlag(flags, 'role'), textFlag(flags, 'namespace'), flags['dry-run'] === true]
    const options = {
      dryRun,
      ...(role === undefined ? {} : { role }),
      ...(namespace === undefined ? {} : { namespace }),
    }
    const { store, schemaVersion, migrations, sql } = await opening(context, () => migrate(address, options))
    const url = maskStoreUrl(address)
    output.result({ url, store, schemaVersion, migrations, ...(dryRun ? { sql } : {}) }, () => {
      if (sql === null) {
        const version = schemaVersion === null ? 'has no schema' : `is at schema version ${schemaVersion}`
        const applied = migrations.length === 0 ? '' : `; applied ${migrations.join(', ')}`
        output.line(`the ${store} store ${version}${applied}`)
      } else if (sql === '') output.line(`-- the ${store} store has nothing to run`)
      else for (const line of sql.trimEnd().split('\n')) output.line(line)
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
