/**
 * Starts its children in order, stops them in reverse, and applies the restart policy: an actor that throws is restarted,
 * and when it throws too often within a window the failure is escalated and the whole tree stops.
 */
import type { Clock } from '../clock.ts'
import type { Logger } from '../telemetry.ts'
import type { Actor } from './actor.ts'

export interface RestartPolicy {
  readonly restartsMax: number
  readonly windowMs: number
}

const RESTART_POLICY: RestartPolicy = { restartsMax: 3, windowMs: 60_000 }

type Child = Pick<Actor<never>, 'name' | 'start' | 'stop' | 'restart' | 'supervise'>

export interface SupervisorOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly policy?: RestartPolicy
  /** Called once when a child failed too often. */
  readonly onEscalate: (error: unknown) => void
}

export class Supervisor {
  private readonly children: Child[] = []
  private readonly options: SupervisorOptions
  private readonly failures = new Map<string, number[]>()
  private isEscalated = false

  constructor(options: SupervisorOptions) {
    this.options = options
  }

  /** Starts a child; when it fails to start, those started before are stopped and its error is thrown. */
  async start(child: Child): Promise<void> {
    child.supervise((actor, error) => this.failed(child, actor.name, error))
    try {
      await child.start()
      this.children.push(child)
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    for (let child = this.children.pop(); child !== undefined; child = this.children.pop()) await child.stop()
  }

  private failed(child: Child, name: string, error: unknown): void {
    const { clock, logger, policy = RESTART_POLICY, onEscalate } = this.options
    const now = clock.monotonic()
    const recent = (this.failures.get(name) ?? []).filter((at) => now - at < policy.windowMs)
    recent.push(now)
    this.failures.set(name, recent)
    logger.error({ err: error, actor: name, failures: recent.length }, 'an actor failed')
    if (recent.length <= policy.restartsMax) {
      child.restart()
      return
    }
    if (this.isEscalated) return
    this.isEscalated = true
    onEscalate(error)
  }
}
