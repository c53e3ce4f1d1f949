/** What passes between a PostgreSQL client and its server, as far as faults of the proxy are aimed at it. */

const SYNC = Buffer.from([0x53, 0, 0, 0, 4])
const READY = Buffer.from([0x5a, 0, 0, 0, 5])

/** A piece after which the server owes an answer: a plain query, or a Sync behind other messages. */
export const isQuery = (piece: Buffer): boolean => piece[0] === 0x51 || piece.subarray(-SYNC.length).equals(SYNC)

/** A query that holds these words. */
export const isQueryOf =
  (words: string) =>
  (piece: Buffer): boolean =>
    isQuery(piece) && piece.includes(words)

/** The whole answer has come, and so the server has committed what it commits. */
export const isAnswered = (reply: Buffer): boolean => reply.subarray(-READY.length - 1, -1).equals(READY)
