/** All keys of a namespace with their contents, read past the store on a connection of its own. */
import { Redis } from 'ioredis'

export type Column =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'hash'; readonly fields: ReadonlyMap<string, string> }
  | { readonly type: 'list'; readonly items: readonly string[] }
  | { readonly type: 'zset'; readonly scores: ReadonlyMap<string, number> }

/** By the whole name of the key. Bytes that are no text are read as Latin-1. */
export type Dump = ReadonlyMap<string, Column>

const PAGE = 1000

export class Dumper {
  private readonly client: Redis

  constructor(port: number) {
    this.client = new Redis({ port, host: '127.0.0.1', protocol: 2, replyMapping: 'legacy' })
    this.client.on('error', () => {}) // What is asked rejects with it.
  }

  async dump(namespace: string): Promise<Dump> {
    const found = await Promise.all([`hf:{${namespace}:*`, `hf:{${namespace}}:*`].map((match) => this.keys(match)))
    const names = [...new Set(found.flat())].sort()
    return new Map(await Promise.all(names.map(async (name) => [name, await this.column(name)] as const)))
  }

  close(): void {
    this.client.disconnect()
  }

  private async keys(match: string): Promise<readonly string[]> {
    const names: string[] = []
    let cursor = '0'
    do {
      const [next, page] = await this.client.scan(cursor, 'MATCH', match, 'COUNT', PAGE)
      names.push(...page)
      cursor = next
    } while (cursor !== '0')
    return names
  }

  private async column(name: string): Promise<Column> {
    const type = await this.client.type(name)
    switch (type) {
      case 'string':
        return { type, value: (await this.client.get(name)) ?? '' }
      case 'list':
        return { type, items: await this.texts('LRANGE', name, 0, -1) }
      case 'hash':
        return { type, fields: new Map(pairs(await this.texts('HGETALL', name))) }
      case 'zset': {
        const flat = await this.texts('ZRANGE', name, 0, -1, 'WITHSCORES')
        return { type, scores: new Map(pairs(flat).map(([member, score]) => [member, Number(score)])) }
      }
      default:
        throw new Error(`${name} is a ${type}`)
    }
  }

  private async texts(command: string, ...args: readonly (string | number)[]): Promise<readonly string[]> {
    const reply = (await this.client.callBuffer(command, [...args])) as readonly Buffer[]
    return reply.map((bytes) => bytes.toString('latin1'))
  }
}

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((text, index) => (index % 2 === 0 ? [[text, flat[index + 1] ?? ''] as const] : []))
}
