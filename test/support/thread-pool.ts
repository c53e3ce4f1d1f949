/**
 * Makes pools of handler threads for tests and the tasks they run, with services that write down what reached them.
 */

import { PoolActor, type PoolOptions } from '#dist/src/actors/pool-actor.js'
import type { ThreadOutcome, ThreadRun, ThreadServices, ThreadTask } from '#dist/src/actors/thread-run.js'
import { systemTimers } from '#dist/src/clock.js'
import { defineJob, inThread } from '#dist/src/contract.js'
import type { Isolation, IsolationOptions } from '#dist/src/isolation.js'

export const handlerUrl = (name: string): URL => new URL(`./handlers/${name}`, import.meta.url)
export const behaviour = handlerUrl('thread-behaviour.mjs')
const plain = inThread(defineJob('test'), behaviour)

export interface Recorded {
  readonly progress: unknown[]
  readonly enqueued: { type: string; input: unknown; options: unknown }[]
  readonly logs: { level: string; fields: object; message: string | undefined }[]
}

export function recorder(overrides: Partial<ThreadServices> = {}): { services: ThreadServices; seen: Recorded } {
  const seen: Recorded = { progress: [], enqueued: [], logs: [] }
  const services: ThreadServices = {
    async progress(value) {
      seen.progress.push(value)
    },
    async enqueue(type, input, options) {
      seen.enqueued.push({ type, input, options })
      return { id: `default/${seen.enqueued.length}`, deduplicated: false }
    },
    log(level, fields, message) {
      seen.logs.push({ level, fields, message })
    },
    ...overrides,
  }
  return { services, seen }
}

export function task(input: unknown, overrides: Partial<ThreadTask> = {}): ThreadTask {
  return {
    module: behaviour,
    isolation: plain.isolation,
    input,
    startBefore: null,
    onStart: null,
    logFrom: 0,
    job: {
      jobId: 'mail/01',
      type: 'test',
      lane: 'mail',
      attempt: 2,
      maxAttempts: 7,
      isLastAttempt: false,
      leaseEpoch: 1_700_000_000_000_001,
      workerId: 'worker-1',
      deadlineAt: 1_900_000_000_000,
      metadata: { tenant: 'a' },
      traceId: 'trace-1',
    },
    ...overrides,
  }
}

/** A pool that is started, and `act`, which runs the behaviour module. */
export class TestPool {
  readonly actor: PoolActor
  readonly idleCrashes: unknown[] = []
  readonly #crashWaiters: (() => void)[] = []

  readonly isolation: Isolation

  constructor(options: Partial<PoolOptions> = {}, isolation: IsolationOptions = {}) {
    const modules = [inThread(defineJob('test'), behaviour, isolation)]
    this.isolation = modules[0]?.isolation ?? plain.isolation
    this.actor = new PoolActor({
      threads: 2,
      timers: systemTimers,
      modules,
      onIdleCrash: (error) => {
        this.idleCrashes.push(error)
        for (const wake of this.#crashWaiters.splice(0)) wake()
      },
      ...options,
    })
  }

  nextIdleCrash(): Promise<void> {
    return new Promise((resolve) => {
      this.#crashWaiters.push(resolve)
    })
  }

  run(input: object, services: ThreadServices = recorder().services): ThreadRun {
    return this.actor.run(task(input, { isolation: this.isolation }), services)
  }

  act(act: string, more: object = {}, services?: ThreadServices): Promise<ThreadOutcome> {
    return this.run({ act, ...more }, services).outcome
  }
}

/** The output of a success; anything else fails the test with what came instead. */
export function output(outcome: ThreadOutcome): unknown {
  if (outcome.kind === 'succeeded') return outcome.output
  throw new Error(`expected a success, got ${JSON.stringify(outcome)}`)
}

export function failure(outcome: ThreadOutcome): { kind: string; code: string; message: string } {
  if (outcome.kind === 'succeeded') throw new Error(`expected no success, got ${JSON.stringify(outcome.output)}`)
  return { kind: outcome.kind, code: outcome.failure.code, message: outcome.failure.message }
}
