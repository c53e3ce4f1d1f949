/**
 * What a store without a server answers to the questions about servers and wake-ups: every listener hears every hint, none is
 * sure to arrive, and the store is always the same one.
 */
import type { HintSubscription } from './backend.ts'

/** A subscription that spends nothing on a wake-up, so that it need not know who wants one. */
export function everyHint(stop: () => void): HintSubscription {
  return { want: () => {}, isReliable: false, stop }
}

/** `Backend.onChange` of a store that is never another one than before. */
export const neverChanges = (): (() => void) => () => {}

/** `Backend.keepLeases` of a store that nobody else can take a lease from while this process stands still. */
export const keepsNoLeases = (): null => null
