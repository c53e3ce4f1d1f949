/** One server, given by its address or found through Sentinel: every call goes over one connection, the wait over another. */
import type { LuaScript } from '../../lua/script.ts'
import { type ChangeListener, Changes } from '../changes.ts'
import { Link } from './link.ts'
import type { RedisLocation } from './location.ts'
import { runScript } from './script-call.ts'
import { type ServerReport, weakest } from './server-facts.ts'
import type { RedisArgument, RedisReply, RedisServers, ServerFacts } from './servers.ts'
import { type OnMessage, Subscriber } from './subscriber.ts'
import { type Popped, Waiter } from './waiter.ts'
import { targetOf, type Wiring } from './wiring.ts'

export class Standalone implements RedisServers {
  private readonly link: Link
  private readonly waiter: Waiter
  private readonly subscriber: Subscriber
  private readonly changes: Changes
  private readonly waitReplicas: number
  private readonly timeoutMs: number
  /** Of the last report; asked for with each enqueue. */
  private known: { readonly report: ServerReport | undefined; readonly facts: ServerFacts } | undefined

  constructor(location: RedisLocation, wiring: Wiring) {
    const target = targetOf(location)
    this.changes = new Changes(wiring.timers)
    this.link = new Link(target, wiring, {
      onReady: (report, isOther) => {
        wiring.settings.again(target.server, report)
        if (isOther) this.changes.announce()
      },
    })
    this.waiter = new Waiter(() => target, wiring)
    this.subscriber = new Subscriber(() => target, wiring)
    this.waitReplicas = location.waitReplicas
    this.timeoutMs = wiring.callTimeoutMs
  }

  /** Settles with the next try to connect. */
  async connect(): Promise<readonly ServerReport[]> {
    await this.link.nextAttempt()
    return this.link.report === undefined ? [] : [this.link.report]
  }

  run(script: LuaScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<RedisReply> {
    return runScript(this.link, { script, keys, args, waitReplicas: this.waitReplicas, timeoutMs: this.timeoutMs })
  }

  command(name: string, _key: string, args: readonly RedisArgument[]): Promise<RedisReply> {
    return this.link.send(name, args)
  }

  pop(lists: readonly string[], timeoutMs: number): Promise<Popped | null> {
    return this.waiter.pop(lists, timeoutMs)
  }

  listen(channel: string, onMessage: OnMessage): void {
    this.subscriber.listen(channel, onMessage)
  }

  get isWaiting(): boolean {
    return this.waiter.isWaiting
  }

  onChange(listener: ChangeListener): () => void {
    return this.changes.add(listener)
  }

  settled(): Promise<void> {
    return this.changes.settled()
  }

  facts(): ServerFacts {
    const { report } = this.link
    if (this.known === undefined || this.known.report !== report) {
      this.known = { report, facts: weakest(report === undefined ? [] : [report], this.waitReplicas) }
    }
    return this.known.facts
  }

  async close(): Promise<void> {
    await Promise.all([this.link.close(), this.waiter.close(), this.subscriber.close()])
  }
}
