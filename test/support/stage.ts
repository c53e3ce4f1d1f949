/** What a test of faults needs in any store, all of it gone at its end: proxies, clients and processes, in a namespace of its own. */
import { randomBytes } from 'node:crypto'
import { type ConnectOptions, connect, type Holdfast } from 'holdfast'
import { Child } from './child.ts'
import { FaultProxy } from './proxy.ts'

// What clients and their processes would warn of is what these tests do to them.
process.env.HOLDFAST_LOG ??= 'silent'

export class Stage {
  readonly namespace = `t${randomBytes(5).toString('hex')}`
  readonly #closers: (() => unknown)[] = []

  /** Ends everything, the latest first. */
  async clear(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
  }

  defer(close: () => unknown): void {
    this.#closers.push(close)
  }

  async proxy(server: { readonly port: number }): Promise<FaultProxy> {
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
