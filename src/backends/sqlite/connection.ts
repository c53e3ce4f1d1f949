/**
 * One connection to the file: opened with the settings that durability needs, transactions under the write lock, and the
 * wait for it, jittered and bounded. Synchronous: it lives in the thread of the store.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type Database from 'better-sqlite3'
import type { Clock } from '../../clock.ts'
import { HoldfastError } from '../../errors.ts'
import type { Random } from '../../random.ts'
import { isBusy, storeError } from './errors.ts'
import { migrate } from './migrate.ts'
import { checkPath, checkSqliteVersion, loadDriver } from './open-checks.ts'
import { Statements } from './statement.ts'

export const MEMORY_PATH = ':memory:'

export interface ConnectionOptions {
  /** A path, or `:memory:`. */
  readonly path: string
  readonly readonly?: boolean
  /** False: the file must be there. */
  readonly create?: boolean
  /** How long a call waits for the write lock before STORE_BUSY. */
  readonly busyDeadlineMs?: number
}

/** What the thread gives the store beside the file. */
export interface Surroundings {
  readonly clock: Clock
  readonly random: Random
  /** Blocks the thread. */
  pause(durationMs: number): void
}

/** Below the deadline of a call (10 s), so that the caller learns that nothing was done. */
const BUSY_DEADLINE_MS = 5_000
/**
 * SQLite itself does not wait, we do: its wait has no jitter, and a process that exits while a driver call is about to
 * fail with SQLITE_BUSY is aborted (better-sqlite3 12.11 builds its error with ToLocalChecked, which a thread that is
 * being stopped cannot do; seen 2026-11-29). Between two tries the thread waits where it can be stopped.
 */
const BUSY_TIMEOUT_MS = 0
/** The longest pause between two tries, doubling from the first to the last. */
const PAUSE_MS_MIN = 1
const PAUSE_MS_MAX = 10
/**
 * Pages in the log before they are written back. A log that still grows makes each commit wait for the file system's own
 * journal: 350 against 200 µs an insert here. Measured 2026-11-29, 1,000 against 4,000 pages, medians of two rounds: one
 * awaited enqueue 2.7 k against 1.6 k/s, process at 100 slots 40 k against 32 k/s, with history 18 k against 15 k/s.
 */
const CHECKPOINT_PAGES = 1_000
/** The log is cut back to this once no reader needs more of it. */
const LOG_BYTES_MAX = 48 * 1024 * 1024

export class Connection {
  readonly path: string
  readonly isMemory: boolean
  readonly isReadonly: boolean
  readonly database: Database.Database
  readonly sql: Statements
  readonly versions: { readonly sqlite: string; readonly schema: number }
  /** Which file this is; null: none. The path may come to name another one. */
  private readonly identity: string | null
  private isSpoilt = false
  private readonly surroundings: Surroundings
  private readonly busyDeadlineMs: number
  private readonly begin: { readonly read: Database.Statement; readonly write: Database.Statement }
  private readonly end: { readonly commit: Database.Statement; readonly rollback: Database.Statement }

  constructor(options: ConnectionOptions, surroundings: Surroundings) {
    this.isMemory = options.path === MEMORY_PATH
    // An absolute path is never taken for a URI.
    this.path = this.isMemory ? MEMORY_PATH : resolve(options.path)
    this.isReadonly = options.readonly === true
    this.surroundings = surroundings
    this.busyDeadlineMs = options.busyDeadlineMs ?? BUSY_DEADLINE_MS
    const driver = loadDriver()
    if (!this.isMemory) checkPath(this.path, { isReadonly: this.isReadonly, mayCreate: options.create !== false })
    const opening = { readonly: this.isReadonly, fileMustExist: !this.isMemory, timeout: BUSY_TIMEOUT_MS }
    this.database = this.attempt('open', () => new driver(this.path, opening))
    try {
      // To prepare anything is to read the schema, so even this may meet another process that starts.
      const version = this.attempt('open', () => this.database.prepare('SELECT sqlite_version()').pluck().get())
      const sqlite = String(version)
      checkSqliteVersion(sqlite)
      this.attempt('open', () => this.configure())
      this.sql = new Statements(this.database)
      this.begin = { read: this.database.prepare('BEGIN'), write: this.database.prepare('BEGIN IMMEDIATE') }
      this.end = { commit: this.database.prepare('COMMIT'), rollback: this.database.prepare('ROLLBACK') }
      this.versions = { sqlite, schema: this.migrate() }
      this.identity = this.isMemory ? null : identityOf(this.path)
    } catch (error) {
      this.database.close()
      throw storeError(error, this.path, 'open')
    }
  }

  private configure(): void {
    const { database } = this
    database.pragma('temp_store = MEMORY')
    database.pragma('trusted_schema = OFF')
    if (this.isReadonly) return
    // Only takes effect before the first page is written.
    if (database.pragma('page_count', { simple: true }) === 0) database.pragma('auto_vacuum = INCREMENTAL')
    const mode = database.pragma('journal_mode = WAL', { simple: true })
    if (mode !== (this.isMemory ? 'memory' : 'wal')) {
      throw new HoldfastError(
        'STORE_UNAVAILABLE',
        `the SQLite store ${this.path} refuses WAL: it answered ${String(mode)}`,
        {
          details: { path: this.path, outcome: 'refused' },
        },
      )
    }
    // The driver's default of NORMAL would lose acknowledged commits in a power cut.
    database.pragma('synchronous = FULL')
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    database.pragma(`journal_size_limit = ${LOG_BYTES_MAX}`)
  }

  private migrate(): number {
    const { database, path, isReadonly, surroundings } = this
    const write = (run: () => void): void => this.write(run)
    return this.attempt('open', () => migrate({ database, path, isReadonly, nowMs: surroundings.clock.now(), write }))
  }

  /** Runs `run` under the write lock, all or nothing. Throws a HoldfastError that says whether anything may be done. */
  write<T>(run: () => T): T {
    this.requireSameFile()
    this.attempt('begin', () => this.begin.write.run())
    return this.finish(run)
  }

  /** Runs `run` on one unchanging view of the file. */
  read<T>(run: () => T): T {
    this.requireSameFile()
    // The first look at the file may find it locked for a moment; reading again does no harm.
    return this.attempt('begin', () => {
      this.begin.read.run()
      return this.finish(run)
    })
  }

  /** False: whatever is asked of this connection can only fail or be lost; the file has to be opened anew. */
  get isUsable(): boolean {
    return !this.isSpoilt && !this.database.inTransaction
  }

  /** What is written to a file that was deleted or replaced under an open connection is seen by nobody, ever. */
  private requireSameFile(): void {
    // Not known yet while the file is opened.
    if (this.identity === undefined || this.identity === null || identityOf(this.path) === this.identity) return
    this.isSpoilt = true
    const problem = `the file of the SQLite store ${this.path} was deleted, moved or replaced while it was open`
    throw new HoldfastError('STORE_UNAVAILABLE', problem, { details: { path: this.path, outcome: 'notDone' } })
  }

  private finish<T>(run: () => T): T {
    let value: T
    try {
      value = run()
    } catch (error) {
      this.rollBack()
      throw storeError(error, this.path, 'run')
    }
    try {
      this.end.commit.run()
    } catch (error) {
      this.rollBack()
      throw storeError(error, this.path, 'commit')
    }
    return value
  }

  /** SQLite itself rolls back on some errors, a full disk among them. */
  private rollBack(): void {
    if (!this.database.inTransaction) return
    try {
      this.end.rollback.run()
    } catch {
      // The connection is of no more use; the error that led here is the one to report.
    }
  }

  /** Repeats `run` while another connection is in its way, until the deadline. */
  private attempt<T>(stage: 'open' | 'begin', run: () => T): T {
    const { clock, random, pause } = this.surroundings
    const startedAt = clock.monotonic()
    for (let longest = PAUSE_MS_MIN; ; longest = Math.min(longest * 2, PAUSE_MS_MAX)) {
      try {
        return run()
      } catch (error) {
        const isOver = clock.monotonic() - startedAt >= this.busyDeadlineMs
        if (!isBusy(error) || isOver) throw storeError(error, this.path, stage)
      }
      pause(random.next() * longest)
    }
  }

  /** Changes when another connection has committed. */
  dataVersion(): unknown {
    return this.database.pragma('data_version', { simple: true })
  }

  /** Upkeep that belongs to no transaction; whatever is in its way now is left for the next time. Tells how large a log is that stays. */
  housekeep(): number | null {
    try {
      this.database.pragma('optimize')
      this.database.pragma(`incremental_vacuum(${VACUUM_PAGES_MAX})`)
      // A reader that stayed for long lets the log grow; after it has gone, an idle store would never cut it back.
      if (logBytes(this) > LOG_BYTES_MAX) this.database.pragma('wal_checkpoint(TRUNCATE)')
    } catch {
      // A lock or a full disk: the calls that follow meet it too and say so.
    }
    const left = logBytes(this)
    return left > LOG_BYTES_MAX ? left : null
  }

  /** Writes the log back into the file, as far as others let it, and ends. */
  close(): void {
    try {
      if (!this.isReadonly && !this.isSpoilt && this.database.open) this.database.pragma('wal_checkpoint(TRUNCATE)')
    } catch {
      // The log stays beside the file; the next who opens it carries on from there.
    } finally {
      this.database.close()
    }
  }
}

function identityOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? 'none' : `${stats.dev}:${stats.ino}`
}

/** Free pages given back to the file system at a time: 4 MiB. */
const VACUUM_PAGES_MAX = 1_024

/** The size of the log beside the file. */
export function logBytes({ isMemory, path }: Connection): number {
  return isMemory ? 0 : (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0)
}
