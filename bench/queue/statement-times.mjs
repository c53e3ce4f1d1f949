// How long the statements that claim jobs take, seen from this process: `query` of the driver's clients is wrapped, so that the same
// figure can be had of every queue on PostgreSQL. The time ends with the answer and so holds the wait for a busy event loop.

const CLAIMS = /skip\s+locked/i

const textOf = (first) => (typeof first === 'string' ? first : (first?.text ?? ''))

export class ClaimTimes {
  #times = []
  #Client
  #original

  /** `pg` is the very copy of the driver that the queue uses. */
  constructor(pg) {
    this.#Client = pg.Client
    this.#original = pg.Client.prototype.query
    const original = this.#original
    const record = (startedAt) => this.#times.push(performance.now() - startedAt)
    pg.Client.prototype.query = function (...args) {
      if (!CLAIMS.test(textOf(args[0]))) return original.apply(this, args)
      const startedAt = performance.now()
      const last = args.at(-1)
      if (typeof last === 'function') args[args.length - 1] = withRecord(last, startedAt, record)
      else if (typeof args[0]?.callback === 'function')
        args[0].callback = withRecord(args[0].callback, startedAt, record)
      const result = original.apply(this, args)
      if (typeof result?.then !== 'function') return result
      return result.then((answer) => {
        record(startedAt)
        return answer
      })
    }
  }

  /** The times since the last call, in milliseconds. */
  take() {
    const times = this.#times
    this.#times = []
    return times
  }

  stop() {
    this.#Client.prototype.query = this.#original
  }
}

function withRecord(callback, startedAt, record) {
  return function (...answer) {
    record(startedAt)
    return callback.apply(this, answer)
  }
}
