/** What a test of faults on PostgreSQL needs, all of it gone at its end. */
import { randomBytes } from 'node:crypto'
import { type ConnectOptions, connect, type Holdfast } from 'holdfast'
import { Child } from '../support/child.ts'
import { PostgresServer, type PostgresServerOptions } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'

// What clients and their processes would warn of is what these tests do to them.
process.env.HOLDFAST_LOG ??= 'silent'

export class PostgresStage {
  readonly namespace = `t${randomBytes(5).toString('hex')}`
  readonly #closers: (() => Promise<unknown>)[] = []

  /** Ends everything, the latest first. */
  async clear(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
  }

  defer(close: () => Promise<unknown>): void {
    this.#closers.push(close)
  }

  async server(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const server = await PostgresServer.start(options)
    this.defer(() => server.stop())
    return server
  }

  async proxy(server: PostgresServer): Promise<FaultProxy> {
    const proxy = await FaultProxy.start({ upstream: server.port })
    this.defer(() => proxy.close())
    return proxy
  }

  async client(url: string, options: ConnectOptions = {}): Promise<Holdfast> {
    const hf = await connect(url, { namespace: this.namespace, ...options })
    this.defer(() => hf.close())
    return hf
  }

  child(script: string, url: string, ...args: readonly string[]): Child {
    const child = new Child(script, [url, this.namespace, ...args])
    this.defer(() => child.kill())
    return child
  }
}
