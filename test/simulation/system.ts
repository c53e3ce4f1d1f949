/**
 * Runs one scenario: real clients and workers in simulated processes, on one store, under faults, until everything has ended
 * or the deadline has passed; then hands the whole run to the checkers.
 */
import { createHash } from 'node:crypto'
import { pino } from 'pino'
import { connectWith, type Holdfast } from '#dist/src/client.js'
import { defineJob, handle, type JobContext, type JobContract, retry } from '#dist/src/contract.js'
import { type HoldfastError, isHoldfastError, PermanentError } from '#dist/src/errors.js'
import { isTerminal } from '#dist/src/job.js'
import type { Worker } from '#dist/src/worker.js'
import {
  checkLiveness,
  checkNoneLost,
  checkNoneOrphaned,
  checkNoneTaken,
  checkPunctual,
  checkRunsExplained,
  checkSafety,
  type Violation,
} from './checkers.ts'
import { type Counts, FaultyBackend, NO_FAULTS, SimulatedStore } from './faulty-backend.ts'
import type { DumpedJob, Effect, Produced, Run } from './history.ts'
import { checkLimits, concurrencyKeyOf } from './limits.ts'
import { SeededRandom } from './random.ts'
import { type Act, livenessBoundMs, type Mishap, type PlannedJob, type Scenario } from './scenario.ts'
import { type VirtualProcess, World } from './virtual-time.ts'

const EVENT_BUDGET = 300_000
/** How often, in virtual time, a run looks whether everything has ended. */
const LOOK_MS = 250

interface Input {
  readonly acts: readonly Act[]
}

/** One incarnation of a process: its clock and timers, its way to the store, its client and its worker. */
interface Incarnation {
  readonly process: VirtualProcess
  /** The one that renews leases. */
  readonly thread: VirtualProcess
  readonly backend: FaultyBackend
  readonly client: Holdfast
  readonly workers: Worker[]
}

export interface Outcome {
  readonly run: Run
  readonly violations: readonly Violation[]
  readonly counts: Counts
  readonly hash: string
  readonly virtualMs: number
  readonly events: number
}

export class System {
  private readonly scenario: Scenario
  private readonly ownTypes: readonly Task[]
  private readonly random: SeededRandom
  private readonly world: World
  private readonly store: SimulatedStore
  private readonly effects: Effect[] = []
  private readonly produced = new Map<string, Produced>()
  private readonly violations: Violation[] = []
  private readonly alive: (Incarnation | null)[] = []
  private incarnations = 0
  private isHealed = false
  /** The engine logs errors only when an invariant of its own is broken. */
  private readonly logger = pino({ level: 'error' }, { write: (line) => this.report('R35', '', line.trim()) })

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.ownTypes = scenario.typeLeasesMs.map((lease, index) => defineJob(`task-${index}`, { lease }))
    this.random = new SeededRandom(scenario.seed + 2 ** 32)
    this.world = new World({ tieBreak: this.random.fork(), budget: EVENT_BUDGET })
    this.store = new SimulatedStore(this.world)
  }

  async run(): Promise<Outcome> {
    const { scenario, world } = this
    this.limit()
    for (const index of scenario.slots.keys()) this.boot(index)
    for (const job of scenario.jobs) world.after(job.at, () => this.produce(job))
    for (const mishap of scenario.mishaps) world.after(mishap.at, () => this.befall(mishap))
    await world.run(scenario.healAt)
    this.heal()
    const deadline = scenario.healAt + livenessBoundMs(scenario)
    for (let at = scenario.healAt; at < deadline && !this.isDrained(); at += LOOK_MS) await world.run(at + LOOK_MS)
    return this.judge(world.startMs + deadline)
  }

  private limit(): void {
    const { limits } = this.scenario
    if (limits === null) return
    this.store.count('limited')
    this.store.execute('queue.policy', { changes: [limits] }, { origin: 'operator', copy: 0 })
  }

  private boot(index: number): void {
    const { scenario } = this
    this.incarnations += 1
    const process = this.world.process(`p${index}.${this.incarnations}`)
    const thread = this.world.process(`${process.name}.thread`)
    const faults = this.isHealed ? NO_FAULTS : scenario.faults
    // Of all processes one half sends a turn beside another, the other half does not.
    const overlapsTurns = this.incarnations % 2 === 0
    const backend = new FaultyBackend(process, this.store, {
      faults,
      random: this.random.fork(),
      overlapsTurns,
      thread,
    })
    const client = connectWith({
      backend,
      clock: process,
      timers: process,
      random: this.random.fork(),
      options: {
        logger: this.logger,
        callDeadline: scenario.callDeadlineMs,
        ...{ keepCompleted: 'forever', keepCancelled: 'forever', keepDead: 'forever' },
      },
    })
    const incarnation: Incarnation = { process, thread, backend, client, workers: [] }
    this.alive[index] = incarnation
    for (let number = 1; number <= scenario.workers; number += 1) {
      void this.startWorker(incarnation, { id: `${process.name}.${number}`, concurrency: scenario.slots[index] ?? 1 })
    }
  }

  private async startWorker(
    { client, process, workers }: Incarnation,
    options: { readonly id: string; readonly concurrency: number },
  ): Promise<void> {
    const { scenario } = this
    let started: Worker | null = null
    const worker = await client.worker({
      ...options,
      lanes: scenario.lanes,
      ...{
        lease: scenario.leaseMs,
        maxBlocked: scenario.maxBlockedMs,
        poll: scenario.pollMs,
        reap: scenario.reapMs,
        killGrace: scenario.killGraceMs,
      },
      handlers: [TASK, ...this.ownTypes].map((type) =>
        handle(type, (input, ctx) => {
          if (started !== null && started.activeJobs > started.concurrency) {
            this.report('I15', ctx.jobId, `${started.activeJobs} run at once in ${started.concurrency} slots`)
          }
          return this.handler(process, input, ctx)
        }),
      ),
    })
    started = worker
    workers.push(worker)
    worker.on('completed', ({ jobId }) => this.heard(jobId, 'completed'))
    worker.on('dead', ({ jobId }) => this.heard(jobId, 'dlq'))
    worker.on('cancelled', ({ jobId }) => this.heard(jobId, 'cancelled'))
    worker.on('error', (error) => this.noteError(error))
  }

  /** An event may only tell what the store has done already. */
  private heard(job: string, state: string): void {
    const [stored = null] = this.store.read('job.get', { ids: [job] }).jobs
    if (stored?.state !== state)
      this.report('R30', job, `told as ${state} while stored as ${stored?.state ?? 'absent'}`)
  }

  private noteError(error: HoldfastError): void {
    this.store.count(`worker error ${error.code}`)
    if (error.code === 'INTERNAL') this.report('R35', '', `${error.message}: ${String(error.cause)}`)
  }

  private report(invariant: string, job: string, message: string): void {
    this.violations.push({ invariant, job, at: this.world.time, message })
  }

  private handler(process: VirtualProcess, input: Input, ctx: JobContext): Promise<string> | string {
    const { jobId: job, attempt, leaseEpoch: epoch } = ctx
    this.effects.push({ kind: 'start', at: this.world.time, job, attempt, epoch })
    const end = (result: 'returned' | 'threw'): void => {
      this.effects.push({ kind: 'end', at: this.world.time, job, attempt, epoch, result })
    }
    const act = input.acts[Math.min(attempt, input.acts.length) - 1] ?? { kind: 'return' }
    // What a handler gives back names its grant, so that an outcome which ends up with another is seen.
    const output = String(epoch)
    if (act.kind === 'return') {
      end('returned')
      return output
    }
    if (act.kind === 'throw') {
      end('threw')
      throw new Error('thrown at once')
    }
    return perform(act, process, ctx).then(
      () => {
        end('returned')
        return output
      },
      (error: unknown) => {
        end('threw')
        throw error
      },
    )
  }

  private produce(job: PlannedJob): void {
    const incarnation = this.alive[job.process]
    if (incarnation === null || incarnation === undefined) return
    const { ref, lane, key } = job
    this.produced.set(ref, { ref, lane, key, status: 'ambiguous', id: null })
    const told = (status: Produced['status'], id: string | null): void => {
      this.produced.set(ref, { ref, lane, key, status, id })
    }
    const options = {
      queue: lane,
      traceId: ref,
      idempotencyKey: key,
      concurrencyKey: concurrencyKeyOf(ref),
      priority: job.priority,
      ...{ delay: job.delayMs, maxAttempts: job.attempts, maxCrashes: this.scenario.maxCrashes },
      ...(job.timeoutMs === null ? {} : { timeout: job.timeoutMs }),
      ...(job.deadlineInMs === null ? {} : { deadline: this.store.clock.now() + job.deadlineInMs }),
      retry: retry.exponential({
        attempts: job.attempts,
        ...{ base: this.scenario.retryBaseMs, cap: this.scenario.retryCapMs },
      }),
    }
    if (job.ownLease !== null) this.store.count('own lease')
    const type = (job.ownLease === null ? undefined : this.ownTypes[job.ownLease]) ?? TASK
    incarnation.client.enqueue(type, { acts: job.acts }, options).then(
      ({ id }) => told('ok', id),
      (error: unknown) => {
        const isDefinite = isHoldfastError(error) && error.details.outcome === 'notDone'
        this.store.count(isDefinite ? 'enqueue failed' : 'enqueue ambiguous')
        told(isDefinite ? 'failed' : 'ambiguous', null)
      },
    )
  }

  private befall(mishap: Mishap): void {
    if (this.isHealed) return
    this.store.count(mishap.kind)
    switch (mishap.kind) {
      case 'storeJump':
        this.store.jumpClock(mishap.byMs)
        return
      case 'storeDown':
        this.store.isDown = true
        this.world.after(mishap.forMs, () => {
          this.store.isDown = false
        })
        return
      case 'pauseLane':
        this.pauseLane(mishap)
        return
      case 'wallJump':
        this.alive[mishap.process]?.process.jumpWallClock(mishap.byMs)
        return
      case 'crash':
      case 'pause':
      case 'block':
      case 'stop':
        this.disturb(mishap)
        return
      default:
        this.operate(mishap)
    }
  }

  private disturb({
    kind,
    process: index,
    forMs,
  }: Extract<Mishap, { readonly forMs: number; readonly process: number }>): void {
    const incarnation = this.alive[index]
    if (incarnation === null || incarnation === undefined || incarnation.process.isPaused) return
    const { process, thread } = incarnation
    if (kind === 'pause' || kind === 'block') {
      const stopped = kind === 'pause' ? [process, thread] : [process]
      for (const each of stopped) each.pause()
      this.world.after(forMs, () => {
        for (const each of stopped) each.resume()
      })
      return
    }
    this.alive[index] = null
    const reboot = (): void => {
      if (this.alive[index] === null) this.boot(index)
    }
    if (kind === 'crash') {
      process.kill()
      thread.kill()
      this.world.after(forMs, reboot)
      return
    }
    // An orderly stop with half its time to drain, then a new incarnation.
    void (async () => {
      await Promise.all(incarnation.workers.map((worker) => worker.stop({ deadline: forMs / 2 })))
      await incarnation.client.close()
      reboot()
    })()
  }

  /** Paused and resumed past the network, so that the lane is surely open again after the last fault. */
  private pauseLane({ lane, forMs }: Extract<Mishap, { readonly lane: string }>): void {
    const set = (paused: boolean): void => {
      this.store.execute('queue.policy', { changes: [{ lane, paused }] }, { origin: 'operator', copy: 0 })
    }
    set(true)
    this.world.after(Math.min(forMs, this.scenario.healAt - this.world.time), () => set(false))
  }

  private operate({ kind, process, job }: Extract<Mishap, { readonly job: number }>): void {
    const client = this.alive[process]?.client
    // Most jobs end soon: an operator who picked blindly would hardly ever meet one that lives.
    const fits = kind === 'retryNow' ? ['scheduled', 'retry_wait'] : ['scheduled', 'queued', 'running', 'retry_wait']
    const live = this.dump().filter(({ state }) => fits.includes(state))
    const id = live[job % Math.max(1, live.length)]?.id ?? this.produced.get(`r${job}`)?.id
    if (client === undefined || id === null || id === undefined) return
    const done = kind === 'retryNow' ? client.retryNow(id) : client.cancel(id, { force: kind === 'cancelByForce' })
    done.catch((error: unknown) => {
      if (!isHoldfastError(error) || error.category === 'internal') this.report('R35', id, String(error))
    })
  }

  private heal(): void {
    this.isHealed = true
    this.store.isDown = false
    this.alive.forEach((incarnation, index) => {
      if (incarnation === null) this.boot(index)
      else {
        incarnation.backend.faults = NO_FAULTS
        for (const each of [incarnation.process, incarnation.thread]) if (each.isPaused) each.resume()
      }
    })
  }

  private dump(): readonly (DumpedJob & { readonly output: unknown; readonly leaseEpoch: number | null })[] {
    const ids = [...new Set(this.store.facts.flatMap((fact) => (fact.kind === 'enqueue' ? [fact.result] : [])))]
    return this.store.read('job.get', { ids }).jobs.flatMap((job) => {
      if (job === null) return []
      const { id, lane, idempotencyKey: key, state, attempts, finishedAt, output, leaseEpoch } = job
      return [{ id, lane, key, state, attempts, finishedAt, output, leaseEpoch }]
    })
  }

  private isDrained(): boolean {
    return this.dump().every(({ state }) => isTerminal(state)) && this.world.time >= this.lastProduction
  }

  private isTimed(id: string): boolean {
    // Its producer may never have heard of it.
    const made = this.store.facts.find((fact) => fact.kind === 'enqueue' && fact.job === id)
    const ref = made?.kind === 'enqueue' ? made.ref : null
    return this.scenario.jobs.some((job) => job.ref === ref && (job.timeoutMs !== null || job.deadlineInMs !== null))
  }

  private get lastProduction(): number {
    return Math.max(...this.scenario.jobs.map(({ at }) => at)) + LOOK_MS
  }

  private judge(deadline: number): Outcome {
    const dump = this.dump()
    const { facts, counts } = this.store
    const run: Run = { facts, effects: this.effects, produced: [...this.produced.values()], dump }
    const { scenario } = this
    for (const failure of this.store.failures) this.report('R35', '', String(failure))
    for (const { id, state, output, leaseEpoch } of dump) {
      if (state === 'completed' && output !== JSON.stringify(String(leaseEpoch))) {
        this.report('I26', id, `holds the output ${String(output)}, completed by epoch ${leaseEpoch}`)
      }
    }
    const isRoomy = scenario.jobs.length <= Math.min(...scenario.slots)
    const violations = [
      ...this.violations,
      ...checkSafety(run),
      ...checkNoneLost(run),
      ...checkLiveness(run, deadline),
      ...(scenario.limits === null ? [] : checkLimits(run, scenario.limits)),
      ...(scenario.weather === 'cuts' ? checkNoneOrphaned(run) : []),
      ...(scenario.weather === 'blocks' ? checkNoneTaken(run, (id) => this.isTimed(id)) : []),
      ...(scenario.weather === 'calm' ? checkRunsExplained(run, { faultFree: true }) : []),
      ...(scenario.weather === 'calm' && isRoomy && scenario.limits === null
        ? checkPunctual(run, {
            calmFrom: this.world.startMs,
            boundMs: 1.2 * scenario.pollMs + 3 * scenario.faults.delayMs + 10,
          })
        : []),
    ]
    const hash = createHash('sha256')
      .update(JSON.stringify([facts, this.effects, run.produced, dump]))
      .digest('hex')
    return { run, violations, counts, hash, virtualMs: this.world.time, events: this.world.eventsFired }
  }
}

type Task = JobContract<Input, Input, string>

const TASK: Task = defineJob('task')

async function perform(act: Act, process: VirtualProcess, ctx: JobContext): Promise<void> {
  const pass = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      process.set(resolve, ms)
    })
  switch (act.kind) {
    case 'permanent':
      throw new PermanentError('no retry can help')
    case 'workThenThrow':
      await pass(act.ms)
      throw new Error('thrown after work')
    case 'progress':
      await pass(act.ms / 2)
      await ctx.progress({ half: true })
      await pass(act.ms / 2)
      return
    case 'untilSignal':
      await new Promise((_, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error))
      })
      return
    case 'work':
    case 'deaf':
      await pass(act.ms)
      return
    default:
      return
  }
}
