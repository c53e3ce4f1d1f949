/** The memory that a main loop and a thread share: what is read is what is held, whatever came and went before. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LeaseBoard, LeasePage } from '#dist/src/backends/lease-board.js'

interface Sides {
  readonly board: LeaseBoard
  /** As a thread would see them. */
  readonly pages: LeasePage[]
}

function sides(): Sides {
  const pages: LeasePage[] = []
  const board = new LeaseBoard(5, (memory) => pages.push(new LeasePage(memory)))
  return { board, pages }
}

const lease = (n: number) => ({ id: `lane/${n}`, token: `${1_764_000_000_000_000 + n}:worker-${n}:nonce.${n}` })
const seen = ({ pages }: Sides) => pages.flatMap((page) => page.held()).map(({ id, token }) => `${id} ${token}`)
const only = ({ pages }: Sides) => {
  const [first] = pages.flatMap((page) => page.held().map((each) => ({ page, lease: each })))
  if (first === undefined) throw new Error('nothing is held')
  return first
}

describe('a lease board', () => {
  test('shows exactly what is held, over any number of pages', () => {
    const act = fc.record({ put: fc.boolean(), pick: fc.nat() })
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 1_500 }), (acts) => {
        const both = sides()
        const held = new Map<number, string>()
        acts.forEach(({ put, pick }, n) => {
          const slots = [...held.keys()]
          if (put || slots.length === 0) {
            const next = lease(n)
            held.set(both.board.put(next, n), `${next.id} ${next.token}`)
          } else {
            const slot = slots[pick % slots.length] ?? -1
            both.board.clear(slot)
            held.delete(slot)
          }
        })
        expect(seen(both).sort()).toEqual([...held.values()].sort())
      }),
      { numRuns: 30 },
    )
  })

  test('has room for the longest names, and leaves out what does not fit', () => {
    const both = sides()
    const id = `${'l'.repeat(128)}/${'0'.repeat(26)}`
    const token = `1764000000000000:${'w'.repeat(128)}:${'f'.repeat(24)}.9999`
    expect(both.board.put({ id, token }, 0)).not.toBe(-1)
    expect(seen(both)).toEqual([`${id} ${token}`])
    expect(both.board.put({ id: 'x'.repeat(500), token: 't' }, 0)).toBe(-1)
    both.board.clear(-1)
    both.board.limit(-1, 0)
    expect([seen(both).length, both.board.renewedAt(-1)]).toEqual([1, Number.NEGATIVE_INFINITY])
  })

  test('a renewal counts for the stay in which it was seen, and for no later one in the same slot', () => {
    const both = sides()
    const slot = both.board.put(lease(1), 10)
    const first = only(both)
    first.page.noteRenewed(first.lease, 50)
    expect([both.board.renewedAt(slot), only(both).lease.confirmedAt]).toEqual([50, 50])
    both.board.clear(slot)
    expect(both.board.put(lease(2), 20)).toBe(slot)
    expect([both.board.renewedAt(slot), only(both).lease.confirmedAt]).toEqual([Number.NEGATIVE_INFINITY, 20])
    first.page.noteRenewed(first.lease, 70)
    expect([both.board.renewedAt(slot), only(both).lease.confirmedAt]).toEqual([Number.NEGATIVE_INFINITY, 20])
  })

  test('a limit ends with the stay', () => {
    const both = sides()
    const slot = both.board.put(lease(1), 0)
    expect(only(both).lease.renewUntil).toBe(Number.POSITIVE_INFINITY)
    both.board.limit(slot, 99)
    expect(only(both).lease.renewUntil).toBe(99)
    both.board.clear(slot)
    both.board.put(lease(2), 0)
    expect(only(both).lease.renewUntil).toBe(Number.POSITIVE_INFINITY)
  })

  test('the beat is seen by the other side', () => {
    const both = sides()
    expect(both.pages[0]?.beatAt).toBe(5)
    both.board.beat(7)
    expect(both.pages[0]?.beatAt).toBe(7)
  })
})
