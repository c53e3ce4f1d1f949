/**
 * When leases are renewed, by whom, and when no longer. Pure: the main loop and the thread that stands in for it ask the same
 * questions of the same clock. The main loop renews at a third of a lease's life. What it has left unrenewed until half of it
 * is renewed by the thread, as is what is due while the main loop shows no sign of life: as long as that may still come back, and
 * within the attempt's own time.
 */

export interface LeaseTerms {
  /** What a renewal asks for. */
  readonly leaseMs: number
  /**
   * What all is timed by: `leaseMs`, or what claims ask for where that is less, since a lease has that until it was first renewed.
   */
  readonly paceMs: number
  /** How long the main loop may stand still before its leases are given up; 0: nobody stands in for it. */
  readonly maxBlockedMs: number
}

/** Renewals by the main loop in the life of a lease. */
const RENEWALS = 3
/** Share of a lease's life after which the thread renews it although the main loop lives: its renewals do not get through. */
const STAND_IN_AFTER = 0.5
/** Looks of the thread, and beats of the main loop, in the life of a lease: the last stand-in still has a third of it. */
const LOOKS = 6
/** A main loop that is silent for this share of a lease does not renew on time. */
const SILENT = 0.25
/** A main loop that shows no sign of life for this share of a lease may have lost what it holds. */
const GAP = 0.5
/** Share of a lease's life after which an unrenewed one is given up locally. */
const LOCAL_DEADLINE = 0.8

const BEAT_MS_MAX = 500

export const renewEveryMs = ({ paceMs }: LeaseTerms): number => paceMs / RENEWALS

/** How often the thread looks at the leases. */
export const lookEveryMs = ({ paceMs }: LeaseTerms): number => paceMs / LOOKS

/** How soon the thread tries again after a renewal that failed. */
export const retryAfterMs = ({ paceMs }: LeaseTerms): number => Math.max(10, Math.min(250, paceMs / 20))

/** How often the main loop shows that it is alive. */
export const beatEveryMs = ({ paceMs }: LeaseTerms): number => Math.min(BEAT_MS_MAX, paceMs / LOOKS)

/** Everything held is to be renewed before anything else is done. */
export const isAfterGap = (silentMs: number, { paceMs }: LeaseTerms): boolean => silentMs > GAP * paceMs

/** A main loop that stands still for so long is not waited for any longer. */
export const isGivenUp = (silentMs: number, { maxBlockedMs }: LeaseTerms): boolean => silentMs > maxBlockedMs

/** The lease was last confirmed, for `lifeMs`, too long ago to be relied on. */
export const isOverdue = (sinceConfirmedMs: number, lifeMs: number): boolean =>
  sinceConfirmedMs >= LOCAL_DEADLINE * lifeMs

export interface HeldLease {
  /** Before the request was sent that last granted or renewed it. */
  readonly confirmedAt: number
  /** The end of the attempt's own time, grace included; null or infinite where it has none. */
  readonly renewUntil: number | null
}

/** The attempt's own time is over: what holds on to the job beyond it must not keep it from others. */
export const isExhausted = ({ renewUntil }: Pick<HeldLease, 'renewUntil'>, now: number): boolean =>
  renewUntil !== null && now >= renewUntil

/** `silentMs`: since the last sign of life of the main loop. */
export function needsStandIn(
  lease: HeldLease,
  { now, silentMs }: { readonly now: number; readonly silentMs: number },
  { paceMs }: LeaseTerms,
): boolean {
  const after = silentMs > SILENT * paceMs ? 1 / RENEWALS : STAND_IN_AFTER
  return now - lease.confirmedAt >= after * paceMs && !isExhausted(lease, now)
}
