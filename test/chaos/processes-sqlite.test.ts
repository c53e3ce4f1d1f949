/** F41: processes under SIGKILL and SIGSTOP that share one SQLite file. */
import { miscounts } from '../sqlite/dump.ts'
import { freshPath } from '../sqlite/support.ts'
import { processesSuite } from './processes.suite.ts'

processesSuite({
  faults: 'F2 F3 F41 C067 C073',
  jobs: 6_000,
  field: async () => {
    const path = freshPath()
    return { url: `sqlite:${path}`, miscounts: async () => miscounts(path), stop: async () => {} }
  },
})
