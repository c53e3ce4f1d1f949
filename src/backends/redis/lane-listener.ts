/** What becomes of lanes that have work: told to whoever wakes workers. */
export interface LaneListener {
  /** Jobs are on their way to a lane; true when its wake-up went with them. */
  ahead(lane: string): boolean
  /** They are stored; `isReady`: something of the lane can start sooner than before. */
  stored(lane: string, result: { readonly isReady: boolean; readonly isAhead: boolean }): void
  /** Something of the lane can start sooner than before. */
  ready(lane: string): void
  /** Work is left after a turn; `isClaimed` when the turn claimed what it could. */
  left(lane: string, isClaimed: boolean): void
}
