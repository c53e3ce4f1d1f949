// Starts processes of child.mjs and talks to them; a process that dies early fails the run.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const STOP_WITHIN_MS = 15_000

export class Child {
  constructor(process_) {
    this.process = process_
    this.stopping = false
    this.onReport = () => {}
    this.failed = once(process_, 'exit').then(([code]) => {
      if (!this.stopping) throw new Error(`a process of the benchmark ended with ${code}`)
    })
    this.failed.catch(() => {})
    process_.on('message', (message) => {
      if (message.done !== undefined) this.onReport({ done: message.done, lastAt: message.lastAt })
    })
  }

  static async start(role, moduleName, options) {
    const { url, scenario, concurrency, payloadBytes, keepCompleted } = options
    const plain = JSON.stringify({ url, scenario, concurrency, payloadBytes, keepCompleted })
    const child = new Child(fork(fileURLToPath(new URL('./child.mjs', import.meta.url)), [role, moduleName, plain]))
    await Promise.race([once(child.process, 'message'), child.failed])
    return child
  }

  send(message) {
    this.process.send(message)
  }

  async stop() {
    this.stopping = true
    if (this.process.exitCode !== null) return
    const timer = setTimeout(() => this.process.kill('SIGKILL'), STOP_WITHIN_MS)
    const exited = once(this.process, 'exit')
    this.send({ type: 'stop' })
    await exited
    clearTimeout(timer)
  }
}

/** So many workers in a process each, a few at a time because starting takes CPU. */
export async function startWorkers(count, moduleName, options) {
  const workers = []
  while (workers.length < count) {
    const some = Math.min(4, count - workers.length)
    workers.push(...(await Promise.all(Array.from({ length: some }, () => Child.start('worker', moduleName, options)))))
  }
  return workers
}

/** Calls `listener` with the sum of the jobs done and when the last one was. */
export function onTotal(workers, listener) {
  const reports = workers.map(() => ({ done: 0, lastAt: 0 }))
  for (const [index, worker] of workers.entries()) {
    worker.onReport = (report) => {
      reports[index] = report
      listener({
        done: reports.reduce((sum, { done }) => sum + done, 0),
        lastAt: Math.max(...reports.map(({ lastAt }) => lastAt)),
      })
    }
  }
}

export const anyFailed = (children) => Promise.race(children.map(({ failed }) => failed))
