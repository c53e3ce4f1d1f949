// Graphile Worker with its defaults: each slot fetches and completes its jobs one by one, over at most ten connections.
import { graphile, version as installed } from './graphile.mjs'

export { driver } from './graphile.mjs'

export const name = 'graphile-worker-defaults'
export const version = installed
export const settings = 'its defaults, concurrentJobs = slots, addJobs for bulk, logging off'

/** So few that a run ends within half a minute. */
export const jobs = { process: 10_000, backlog: 100_000, processes: 10_000 }

export const open = graphile(() => ({}))
