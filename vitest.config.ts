import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Tests run against what ships. HOLDFAST_DIST points them at another build, such as one with a planted bug.
const dist = process.env.HOLDFAST_DIST ?? fileURLToPath(new URL('./dist', import.meta.url))

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
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
