/** Which node of a Cluster owns each of the 16,384 slots, as one of its nodes told in CLUSTER SLOTS. */
import calculateSlot from 'cluster-key-slot'
import { addressOf, type Endpoint } from './location.ts'
import type { RedisReply } from './servers.ts'

const SLOTS = 16_384

export function slotOf(key: string): number {
  return calculateSlot(key)
}

export class SlotMap {
  /** Address of the owner by slot. */
  private readonly owners: (string | undefined)[]

  constructor(owners: (string | undefined)[] = new Array(SLOTS)) {
    this.owners = owners
  }

  /** `asked` is the node that answered: it gives no host for itself while it does not know its own. */
  static read(reply: RedisReply, asked: Endpoint): SlotMap {
    const owners = new Array<string | undefined>(SLOTS)
    for (const range of list(reply)) {
      const [first, last, owner] = list(range)
      const [host, port] = list(owner)
      const name = host === null || host === undefined ? '' : String(host)
      const address = addressOf({ host: name === '' || name === '?' ? asked.host : name, port: Number(port) })
      owners.fill(address, Number(first), Number(last) + 1)
    }
    return new SlotMap(owners)
  }

  ownerOf(slot: number): string | undefined {
    return this.owners[slot]
  }

  /** True when the slot had another owner. */
  assign(slot: number, address: string): boolean {
    const before = this.owners[slot]
    this.owners[slot] = address
    return before !== address
  }

  /** Every owner once. */
  addresses(): Set<string> {
    return new Set(this.owners.filter((address) => address !== undefined))
  }

  /** True when a slot that had an owner has another one in `next`. */
  differsFrom(next: SlotMap): boolean {
    return this.owners.some((address, slot) => address !== undefined && address !== next.owners[slot])
  }
}

function list(reply: RedisReply | undefined): readonly RedisReply[] {
  return Array.isArray(reply) ? reply : []
}
