/**
 * Renews for main loops that cannot: looks at their boards a few times in the life of a lease, and renews in one call what has been
 * left for too long. It knows no thread: a host gives it clock, timers and a way to the store, in `workers/` a real one.
 * After a gap in its own time (a stopped process, a suspended machine) it looks first, whatever else waits.
 */
import type { Clock, TimerHandle, Timers } from '../clock.ts'
import { LeasePage, type NotedLease } from './lease-board.ts'
import { isAfterGap, isGivenUp, type LeaseTerms, lookEveryMs, needsStandIn, retryAfterMs } from './lease-policy.ts'
import type { Reply, Request } from './protocol/index.ts'

export interface StandInOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly timers: Timers
  /** Rejects when it is not known to be done; it is tried again. */
  readonly renew: (request: Request<'lease.renew'>) => Promise<Reply<'lease.renew'>>
}

interface Watched {
  readonly terms: LeaseTerms
  readonly pages: LeasePage[]
  /** By page and slot, the marks of leases that the store has refused. */
  readonly refused: Map<string, number>
  lookedAt: number
  isRenewing: boolean
  timer: TimerHandle
}

type Due = readonly { readonly page: LeasePage; readonly place: string; readonly lease: NotedLease }[]

export class LeaseStandIn {
  private readonly options: StandInOptions
  private readonly boards = new Map<number, Watched>()

  constructor(options: StandInOptions) {
    this.options = options
  }

  /** The board may have pages already. */
  add(id: number, terms: LeaseTerms, pages: readonly SharedArrayBuffer[]): void {
    const watched: Watched = {
      terms,
      pages: pages.map((memory) => new LeasePage(memory)),
      refused: new Map(),
      lookedAt: this.options.clock.monotonic(),
      isRenewing: false,
      timer: null,
    }
    this.boards.set(id, watched)
    this.arm(watched, lookEveryMs(terms))
  }

  addPage(id: number, memory: SharedArrayBuffer): void {
    this.boards.get(id)?.pages.push(new LeasePage(memory))
  }

  remove(id: number): void {
    const watched = this.boards.get(id)
    this.boards.delete(id)
    if (watched !== undefined) this.options.timers.clear(watched.timer)
  }

  stop(): void {
    for (const id of [...this.boards.keys()]) this.remove(id)
  }

  /** For whoever is about to do something else with the store: what has been left for too long comes first. */
  first(): void {
    if (this.boards.size === 0) return
    const now = this.options.clock.monotonic()
    for (const watched of this.boards.values()) {
      if (isAfterGap(now - watched.lookedAt, watched.terms)) this.look(watched)
    }
  }

  private arm(watched: Watched, waitMs: number): void {
    const { timers } = this.options
    timers.clear(watched.timer)
    watched.timer = timers.set(() => {
      this.arm(watched, lookEveryMs(watched.terms))
      this.look(watched)
    }, waitMs)
  }

  private look(watched: Watched): void {
    const { clock, renew } = this.options
    const now = clock.monotonic()
    watched.lookedAt = now
    const due = dueOf(watched, now)
    if (watched.isRenewing || due.length === 0) return
    watched.isRenewing = true
    const leases = due.map(({ lease: { id, token } }) => ({ id, token }))
    renew({ leases, leaseMs: watched.terms.leaseMs }).then(
      ({ outcomes }) => {
        watched.isRenewing = false
        due.forEach((each, index) => {
          const outcome = outcomes[index]
          // What the main loop has to know of it, its own renewal will tell it.
          if (outcome === 'renewed' || outcome === 'cancelRequested') each.page.noteRenewed(each.lease, now)
          else watched.refused.set(each.place, each.lease.mark)
        })
        watched.pages[0]?.countStandIn()
      },
      () => {
        watched.isRenewing = false
        if (this.isWatched(watched)) this.arm(watched, retryAfterMs(watched.terms))
      },
    )
  }

  private isWatched(watched: Watched): boolean {
    return [...this.boards.values()].includes(watched)
  }
}

function dueOf({ terms, pages, refused }: Watched, now: number): Due {
  const silentMs = now - (pages[0]?.beatAt ?? now)
  if (isGivenUp(silentMs, terms)) return []
  return pages.flatMap((page, number) =>
    page.held().flatMap((lease) => {
      const place = `${number} ${lease.slot}`
      const isRefused = refused.get(place) === lease.mark
      return !isRefused && needsStandIn(lease, { now, silentMs }, terms) ? [{ page, place, lease }] : []
    }),
  )
}
