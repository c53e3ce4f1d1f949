import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Tests run against what ships. HOLDFAST_DIST points them at another build, such as one with a planted bug.
const dist = process.env.HOLDFAST_DIST ?? fileURLToPath(new URL('./dist', import.meta.url))

/** Those that take minutes whatever the machine, so that none of them is left to run alone at the end. */
const LONG = /\/(chaos|conformance)\/|\/scenario\.test\.ts$/

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export default defineConfig({
  resolve: {
    alias: [
      { find: /^holdfast$/, replacement: `${dist}/src/index.js` },
      { find: /^#dist\//, replacement: `${dist}/` },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Most tests wait for leases, servers and processes: with 2 workers on 2 cores a run took 31 minutes and 34 of CPU.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: LongFirst },
  },
})
