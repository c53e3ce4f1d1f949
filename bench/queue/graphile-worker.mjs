// Graphile Worker driven at its best: the settings of its own benchmark, jobs fetched 500 at a time and completions written in batches.
// Tried: completions gathered for 10 or 100 ms (slower), 1,000 at a time (the same), a pause after a short fetch (slower), a connection
// for each slot (no faster; 100 slots would take every connection of a server with its defaults).
import { graphile, version as installed } from './graphile.mjs'

export { driver } from './graphile.mjs'

export const name = 'graphile-worker'
export const version = installed
export const settings =
  'localQueue of 500, completeJobBatchDelay and failJobBatchDelay 0, concurrentJobs = slots, maxPoolSize 10, addJobs for bulk, logging off'

export const open = graphile(() => ({
  maxPoolSize: 10,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}))
