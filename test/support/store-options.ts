/** What the engine hands to a store, for a test that does not care: the system's clock and chance, and nobody to warn. */
import type { BackendOptions } from '#dist/src/backends/backend.js'
import { systemClock } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'

export const storeOptions = (namespace: string, options: Partial<BackendOptions> = {}): BackendOptions => ({
  namespace,
  clock: systemClock,
  random: systemRandom,
  warn: () => {},
  openDeadlineMs: 10_000,
  ...options,
})
