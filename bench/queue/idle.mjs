// Many idle worker processes and one enqueue at a time: how many commands the server gets for each, from the enqueue to the settlement.
// What the idle workers send anyway is measured first and taken off for the same time.
import { prove } from '../scenario/shared.mjs'
import { anyFailed, onTotal, startWorkers } from './processes.mjs'

const SETTLE_MS = 2_000
const BACKGROUND_MS = 5_000
const GAP_MS = 10

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Both ways to count: what clients sent (MONITOR, without the lines of scripts) and all calls (INFO commandstats). */
async function counter(server) {
  const monitor = await server.admin.monitor()
  let sent = 0
  monitor.on('monitor', (_time, [command], source) => {
    if (source !== 'lua' && !/^info$/i.test(command)) sent += 1
  })
  return {
    async during(body) {
      const before = { sent, all: await server.allCommands() }
      const startedAt = performance.now()
      await body()
      const ms = performance.now() - startedAt
      return { sent: sent - before.sent, all: (await server.allCommands()) - before.all, ms }
    },
    stop: () => monitor.disconnect(),
  }
}

async function enqueueAll(queue, workers, options) {
  let arrived = () => {}
  onTotal(workers, ({ done }) => arrived(done))
  const failed = anyFailed(workers)
  for (let index = 0; index < options.jobs; index += 1) {
    const handled = new Promise((resolve) => {
      arrived = (done) => {
        if (done > index) resolve()
      }
    })
    await queue.add({ index })
    await Promise.race([handled, failed])
    await sleep(GAP_MS)
  }
}

export async function idle(module, options) {
  const queue = await module.open(options)
  const workers = await startWorkers(options.processes, module.name, options)
  for (const worker of workers) worker.send({ type: 'start' })
  await sleep(SETTLE_MS)
  const commands = await counter(options.server)
  const background = await commands.during(() => sleep(BACKGROUND_MS))
  const total = await commands.during(() => enqueueAll(queue, workers, options))
  commands.stop()
  prove('idle', options.jobs - (await queue.waiting()), options.jobs)
  await Promise.all(workers.map((worker) => worker.stop()))
  await queue.close()
  const each = (key) => (total[key] - (background[key] * total.ms) / background.ms) / options.jobs
  return {
    value: each('sent'),
    extra: { allCommands: each('all'), idlePerSecond: (background.sent / background.ms) * 1_000 },
  }
}
