// Commands a server gets for one enqueue while 64 worker processes are idle (Redis).

import * as holdfast from '../queue/holdfast.mjs'
import { idle } from '../queue/idle.mjs'

export const unit = { name: 'client commands/enqueue', higherIsBetter: false }
export const defaults = { concurrency: 10, jobs: { redis: 200 }, processes: 64, runs: 1, warmUp: false }
export const extra = {
  allCommands: { name: 'commands/enqueue, those of scripts too', higherIsBetter: false },
  idlePerSecond: { name: 'client commands/s of all idle workers', higherIsBetter: false },
}

export const run = (options) => idle(holdfast, options)
