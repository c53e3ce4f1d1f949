/**
 * A set of things in flight whose members know their own place, so that adding and removing touch one array cell.
 * A Set would do, but its table is rebuilt every few hundred removals, and a rebuilt table that has reached the old generation
 * keeps all later ones alive until the next full collection. Measured 2026-11-29, memory store, 100 slots: half of the young
 * generation survived each scavenge after the first full one; with this, nearly nothing does.
 */
export interface Member {
  /** Kept by the roster; -1 when in none. A member is in one roster at a time. */
  place: number
}

export class Roster<T extends Member> {
  private readonly members: T[] = []

  get size(): number {
    return this.members.length
  }

  has(member: T): boolean {
    return this.members[member.place] === member
  }

  add(member: T): void {
    if (this.has(member)) return
    member.place = this.members.length
    this.members.push(member)
  }

  delete(member: T): void {
    if (!this.has(member)) return
    const last = this.members.pop()
    if (last !== undefined && last !== member) {
      last.place = member.place
      this.members[member.place] = last
    }
    member.place = -1
  }

  clear(): void {
    for (const member of this.members) member.place = -1
    this.members.length = 0
  }

  /** A copy, in no order to rely on. */
  list(): T[] {
    return [...this.members]
  }
}
