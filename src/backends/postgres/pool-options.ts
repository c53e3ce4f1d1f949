/** How a store on a caller's own pool is used: what a URL says in its parameters. Free of the driver's types, since it is public. */

/** What a URL says in its parameters, beside a pool. */
export interface PoolOptions {
  /** The schema of the tables. Default `holdfast`. */
  readonly schema?: string
  /** The pool goes to a pooler that gives each transaction another connection. */
  readonly pooler?: 'transaction'
  /** A URL for the one connection that hears of new jobs; false for none. Default: a connection of its own to where the pool goes. */
  readonly listen?: string | false
  /** False: others are not told of new jobs. */
  readonly notify?: boolean
  /** False: tables are neither made nor changed. */
  readonly migrate?: boolean
}
