// Jobs wait already; several worker processes run them to the last, beside one process.
import { machineTime, perSecond, prove } from '../scenario/shared.mjs'
import { anyFailed, onTotal, startWorkers } from './processes.mjs'
import { fill, settled } from './work-until.mjs'

async function rateOf(queue, module, options) {
  await fill(queue, options.jobs, options.payloadBytes)
  const workers = await startWorkers(options.processes, module.name, options)
  const all = new Promise((resolve) => {
    onTotal(workers, ({ done, lastAt }) => {
      if (done >= options.jobs) resolve({ done, lastAt })
    })
  })
  const startedAt = machineTime()
  for (const worker of workers) worker.send({ type: 'start' })
  const { done, lastAt } = await Promise.race([all, anyFailed(workers)])
  await settled(queue)
  await Promise.all(workers.map((worker) => worker.stop()))
  prove('processes', done, options.jobs)
  return perSecond(options.jobs, lastAt - startedAt)
}

export async function several(module, options) {
  const queue = await module.open(options)
  const one = await rateOf(queue, module, { ...options, processes: 1 })
  const many = await rateOf(queue, module, options)
  await queue.close()
  return { value: many, extra: { one, ofOne: many / one } }
}
