// Graphile Worker behind the calls that every queue here has. It deletes a job that is done.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { peerVersion } from '../setup.mjs'

export const version = peerVersion('graphile-worker')

export const driver = () => pg

// By default it writes two lines to the console for each job.
const logger = new Logger(() => () => {})

/** An `open` whose worker runs with `settingsFor(concurrency)`. */
export function graphile(settingsFor) {
  return async ({ url, concurrency }) => {
    const worker = { connectionString: url, logger, ...settingsFor(concurrency) }
    const utils = await makeWorkerUtils({ preset: { worker } })
    await utils.migrate()
    return {
      add: (input) => utils.addJob('noop', input),
      addMany: (inputs) => utils.addJobs(inputs.map((payload) => ({ identifier: 'noop', payload }))),
      waiting: () => count(utils),
      work: async (slots, handler) => work({ ...worker, ...settingsFor(slots), concurrentJobs: slots }, handler),
      close: () => utils.release(),
    }
  }
}

async function count(utils) {
  const { rows } = await utils.withPgClient((client) =>
    client.query('SELECT count(*)::int AS count FROM graphile_worker._private_jobs'),
  )
  return rows[0].count
}

function work(worker, handler) {
  let runner
  return {
    async start() {
      runner = await run({ preset: { worker }, taskList: { noop: handler }, noHandleSignals: true })
      runner.promise.catch((error) => console.error('graphile-worker:', error))
    },
    stop: () => runner?.stop(),
  }
}
