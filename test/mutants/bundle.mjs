/** Bugs planted in how a bundled application finds the file where its threads begin, and the packages beside it. */

const FILE = 'src/worker-file.js'
const BUNDLE = 'test/bundle/bundle.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const BUNDLE_MUTANTS = [
  {
    name: 'the-file-of-threads-has-one-ending',
    file: FILE,
    find: 'new URL(HERE).pathname',
    replace: "'.js'",
    suites: [BUNDLE],
    only: 'minified, on sqlite',
  },
  {
    name: 'the-file-of-threads-is-not-looked-for',
    file: FILE,
    find: 'if (existsSync(path))',
    replace: 'if (true)',
    suites: [BUNDLE],
    only: 'the file of threads is missing',
  },
  {
    name: 'a-file-of-threads-taken-away-ends-the-worker',
    file: FILE,
    find: 'if (found !== null)',
    replace: 'if (false)',
    suites: ['test/runtime/worker-file.test.ts'],
  },
  {
    name: 'a-bundle-without-import-meta-has-no-place',
    file: FILE,
    find: 'import.meta.url ?? pathToFileURL(__filename).href',
    replace: 'import.meta.url',
    suites: [BUNDLE],
    only: 'leaves import.meta empty',
  },
]
