/** What becomes of lanes that have work: told to whoever wakes workers. */
export interface LaneListener {
  /** The list in which the script that stores jobs may leave a wake-up by itself; null: whoever stores them says `ready` afterwards. */
  listFor(lane: string): string | null
  /** Something of the lane can start sooner than before. */
  ready(lane: string): void
  /** Work is left after a turn; `isClaimed` when the turn claimed what it could. */
  left(lane: string, isClaimed: boolean): void
}
