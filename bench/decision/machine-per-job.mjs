// What a job's machine costs: a real XState actor for each job against steps in the derived table. Three events a job
// (claim, retry or complete, and the start), alone and in a whole worker. Needs a build: `node bench/decision/machine-per-job.mjs`.

import { createLifecycle } from '../../dist/src/actors/lifecycle.js'
import { connect, defineJob, handle } from '../holdfast.mjs'

const JOBS = 100_000
const ROUNDS = 5
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

function alone(inspect) {
  const startedAt = performance.now()
  for (let index = 0; index < JOBS; index += 1) {
    const lifecycle = createLifecycle(`default/${index}`, 'queued', inspect)
    lifecycle.send('claim')
    lifecycle.send('complete')
  }
  return ((performance.now() - startedAt) * 1_000) / JOBS
}

const noop = defineJob('noop')

async function worker(inspect) {
  const hf = await connect('memory:', { keepCompleted: 0, ...(inspect === null ? {} : { inspect }) })
  for (let from = 0; from < JOBS; from += 5_000) {
    await hf.enqueueMany(Array.from({ length: 5_000 }, () => ({ job: noop, input: null })))
  }
  const startedAt = performance.now()
  await hf.runUntilEmpty({ handlers: [handle(noop, async () => {})], concurrency: 100 })
  const elapsed = performance.now() - startedAt
  await hf.close()
  return (JOBS / elapsed) * 1_000
}

const figures = { tableUs: [], machineUs: [], tableJobs: [], machineJobs: [] }
for (let round = 0; round <= ROUNDS; round += 1) {
  const [tableUs, machineUs] = [alone(null), alone(() => {})]
  const [tableJobs, machineJobs] = [await worker(null), await worker(() => {})]
  if (round === 0) continue
  for (const [name, value] of Object.entries({ tableUs, machineUs, tableJobs, machineJobs })) figures[name].push(value)
}
console.log(
  `a job's machine alone: table ${median(figures.tableUs).toFixed(2)} µs, XState actor ${median(figures.machineUs).toFixed(2)} µs`,
)
console.log(
  `whole worker, 100 slots: table ${Math.round(median(figures.tableJobs))} jobs/s, XState actors ${Math.round(median(figures.machineJobs))} jobs/s`,
)
