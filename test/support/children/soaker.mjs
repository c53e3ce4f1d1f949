// The process of a long run that is never replaced: it enqueues, works, cancels and waits for results, inline and in threads, and tells on
// request, with nothing under way, what it holds: memory after a collection, open files, timers and sockets.
import { openSync, readdirSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { args, holdfast, say, told } from './store.mjs'

const { connect, defineJob, handle, inThread, retry } = holdfast
const [, , url, namespace] = process.argv
const [ledgerPath, options] = args
const { everyMs, keepCompleted, ...workerOptions } = JSON.parse(options)
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
const file = openSync(ledgerPath, 'a')
const note = (...words) => writeSync(file, `${words.join(' ')}\n`)
const ended = { task: 0, wild: 0 }
const accepted = { task: 0, wild: 0 }

const open = async (suffix) =>
  connect(url, { namespace: namespace + suffix, ...(keepCompleted ? { keepCompleted } : {}) })
const [hf, wildHf] = [await open(''), await open('-wild')]

const task = defineJob('task', { maxCrashes: 1_000, retry: retry.fixed(1_000, 50) })
const taskHandler = handle(task, async (input, { jobId, attempt, leaseEpoch, progress, log }) => {
  note('start', jobId, attempt, leaseEpoch, process.pid)
  await progress({ attempt }).catch(() => {})
  log.debug({ attempt }, 'runs')
  await setTimeout(Math.random() * 10)
  if (input.failsFirst && attempt === 1) throw new Error('as it was told')
  note('end', jobId, attempt, leaseEpoch, process.pid)
  return leaseEpoch
})
const wild = defineJob('wild', { maxCrashes: 3, retry: retry.fixed(3, 20), timeout: '300ms' })
const wildHandler = inThread(wild, new URL('../handlers/soak.mjs', import.meta.url))
const quick = { killGrace: 50, ...workerOptions }
const workers = [
  await hf.worker({ handlers: [taskHandler], ...quick }),
  await wildHf.worker({ handlers: [wildHandler], ...quick, concurrency: 2 }),
]
for (const [index, kind] of ['task', 'wild'].entries())
  for (const event of ['completed', 'dead', 'cancelled']) workers[index].on(event, () => (ended[kind] += 1))

/** Sends again under the same keys until the store has taken them. */
async function insist(client, requests) {
  for (;;) {
    try {
      return await client.enqueueMany(requests)
    } catch (error) {
      if (!error.retryable) throw error
    }
  }
}

const ACTS = ['echo', 'throws', 'reports', 'echo', 'loops', 'echo', 'exits', 'reports', 'throws', 'echo']
const waits = new Set()

async function produce(round) {
  const numbers = Array.from({ length: 5 }, (_, index) => round * 5 + index)
  const delayOf = (n) => (n % 10 === 3 ? 100 + (n % 1_000) : 0)
  const tasks = await insist(
    hf,
    numbers.map((n) => ({
      job: task,
      input: { failsFirst: n % 50 === 7 },
      options: { idempotencyKey: `s-${n}`, ...(delayOf(n) > 0 ? { delay: delayOf(n) } : {}) },
    })),
  )
  for (const [index, { id }] of tasks.entries()) note('accepted', 's', numbers[index], id)
  accepted.task += tasks.length
  if (round % 3 !== 0) return
  const act = ACTS[(round / 3) % ACTS.length]
  const [job] = await insist(wildHf, [
    { job: wild, input: { act, n: round }, options: { idempotencyKey: `w-${round}` } },
  ])
  accepted.wild += 1
  note('wild', act, job.id)
  if (act === 'reports') void wildHf.cancel(job.id).catch(() => {})
  const wait = job.result({ timeout: '2s' }).then(
    () => {},
    () => {},
  )
  waits.add(wait)
  void wait.finally(() => waits.delete(wait))
}

async function isQuiet(client) {
  const { counts } = await client.stats()
  return counts.queued + counts.scheduled + counts.running + counts.retry_wait === 0
}

/** Resolves when every job has ended. */
async function quiet() {
  await Promise.all(waits)
  for (;;) {
    const areQuiet = await Promise.all([hf, wildHf].map((client) => isQuiet(client).catch(() => false)))
    if (areQuiet.every(Boolean)) return
    await setTimeout(100)
  }
}

async function measure() {
  await quiet()
  for (let turn = 0; turn < 3; turn += 1) {
    await setTimeout(300)
    collect()
  }
  const resources = {}
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heapUsed, external, rss, files: readdirSync('/proc/self/fd').length, resources, accepted, ended }
}

let wanted = 1
let isStopped = false
const asked = () => told(`measure ${wanted}`)
let isAsked = false
const listen = () => void asked().then(() => (isAsked = true))
listen()
void told('stop').then(() => (isStopped = true))
say('ready')
for (let round = 0; !isStopped; ) {
  if (isAsked) {
    say('measured', wanted, JSON.stringify(await measure()))
    isAsked = false
    wanted += 1
    listen()
  } else {
    await produce(round)
    round += 1
  }
  await setTimeout(everyMs)
}
// What was accepted after the last measure ends, too: nobody else works on the wild ones.
await quiet()
for (const worker of workers) await worker.stop({ deadline: '10s' })
for (const client of [hf, wildHf]) await client.close()
say('stopped')
// Nothing but the pipe to the parent may keep it alive.
process.stdin.destroy()
