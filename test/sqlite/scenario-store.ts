/**
 * SQLite under seeded scenarios: clients with a connection each to one file. For the first the answer may be lost with its thread, the disk
 * may be full, or somebody may have the lock; all may be killed in the middle of a transaction, after which the file and its log are
 * opened as they were.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import type { MessageType, Reply, Request } from '#dist/src/backends/protocol/index.js'
import { fromWire } from '#dist/src/backends/sqlite/errors.js'
import type { Call } from '#dist/src/backends/sqlite/group-commit.js'
import { StoreHost } from '#dist/src/backends/sqlite/host.js'
import type { SqliteStore } from '#dist/src/backends/sqlite/store.js'
import type { FromThread } from '#dist/src/backends/sqlite/thread-messages.js'
import { HoldfastError } from '#dist/src/errors.js'
import { type Glimpse, letterOf, type Seen } from '../scenario/glimpse.ts'
import type { ScenarioBackend, ScenarioStore } from '../scenario/store.ts'
import type { SeededRandom } from '../simulation/random.ts'
import { recount } from '../sql/recount.ts'
import { dumpTables } from './dump.ts'
import { ManualClock, openStore, surroundingsOf } from './support.ts'

/** In memory where there is such a place: no power is cut here, so nothing has to wait for a disk. */
const ROOT = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

const LOOK = `SELECT id, state, token, attempts, lease_expires_at, cancel_requested FROM holdfast_job
  UNION ALL SELECT id, state, token, attempts, NULL, 0 FROM holdfast_archive ORDER BY id`

interface LookRow {
  readonly id: string
  readonly state: string
  readonly token: string | null
  readonly attempts: number
  readonly lease_expires_at: number | null
  readonly cancel_requested: number
}

/** What befalls the next call. */
type Trouble = 'request lost' | 'reply lost' | 'disk full' | 'locked'

class FrozenClock extends ManualClock {
  freeze(ms: number): void {
    this.ms = ms
  }
}

/** One client: the inside of a thread of the store. */
class Seat implements ScenarioBackend {
  trouble: Trouble | null = null
  isDiskFull = false
  private readonly make: (post: (message: FromThread) => void) => StoreHost
  private host: StoreHost
  private answer: FromThread | null = null

  constructor(make: Seat['make']) {
    this.make = make
    this.host = this.start()
  }

  async call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    const { trouble } = this
    this.trouble = null
    if (trouble === 'request lost') throw this.died()
    if (trouble === 'disk full' || this.isDiskFull) this.limitPages()
    this.host.run([{ id: 1, type, request, nowMs: null } as Call & { id: number }])
    if (trouble === 'reply lost') throw this.died()
    const { answer } = this
    if (answer?.kind === 'error') throw fromWire(answer.error)
    if (answer?.kind !== 'reply') throw new Error(`${type} was not answered`)
    return answer.reply as Reply<T>
  }

  /** The thread is replaced; nobody knows how far it came. */
  restart(): void {
    this.host.close()
    this.host = this.start()
  }

  close(): void {
    this.host.close()
  }

  /** The file may not grow. */
  private limitPages(): void {
    const { database } = this.store.connection
    database.pragma(`max_page_count = ${database.pragma('page_count', { simple: true })}`)
  }

  allowPages(): void {
    this.store.connection.database.pragma('max_page_count = 1073741823')
  }

  get store(): SqliteStore {
    const { store } = this.host as unknown as { readonly store: SqliteStore | null }
    if (store === null) throw new Error('the file is not open')
    return store
  }

  private start(): StoreHost {
    return this.make((message) => {
      this.answer = message
    })
  }

  private died(): HoldfastError {
    this.restart()
    return new HoldfastError('STORE_UNAVAILABLE', 'the thread ended', { details: { outcome: 'unknown' } })
  }
}

export class SqliteScenarioStore implements ScenarioStore {
  readonly clock = new FrozenClock()
  readonly restartChance = 1
  private path = ''
  private namespace = ''
  private seats: Seat[] = []
  private observer: Database.Database | null = null
  private rival: Database.Database | null = null
  private readonly met: string[] = []
  private copies = 0

  async begin(namespace: string): Promise<void> {
    this.path = join(mkdtempSync(join(ROOT, 'holdfast-scenario-')), 'jobs.db')
    this.namespace = namespace
    openStore({ path: this.path, namespace }, this.clock).close()
    this.observer = new Database(this.path)
  }

  async open(count: number): Promise<readonly Seat[]> {
    const { clock } = this
    this.seats = Array.from(
      { length: count },
      () =>
        new Seat((post) => {
          const options = { path: this.path, namespace: this.namespace, busyDeadlineMs: 0 }
          return new StoreHost(options, surroundingsOf(clock), post)
        }),
    )
    return this.seats
  }

  async arm(random: SeededRandom): Promise<void> {
    const trouble = random.pick(['request lost', 'reply lost', 'reply lost', 'disk full', 'locked'] as const)
    this.met.push(trouble)
    this.faulty.trouble = trouble
    if (trouble !== 'locked') return
    this.rival = new Database(this.path)
    this.rival.exec('BEGIN IMMEDIATE')
  }

  async disarm(): Promise<void> {
    this.faulty.trouble = null
    if (!this.faulty.isDiskFull) this.faulty.allowPages()
    this.rival?.close()
    this.rival = null
  }

  /** For the faulty client alone there is no more room. */
  async setDown(isDown: boolean): Promise<void> {
    this.faulty.isDiskFull = isDown
    if (!isDown) this.faulty.allowPages()
  }

  async shake(random: SeededRandom): Promise<string> {
    const text = random.pick(['PRAGMA wal_checkpoint(TRUNCATE)', 'VACUUM', 'ANALYZE', 'REINDEX'])
    this.observing.exec(text)
    return text
  }

  async killConnections(): Promise<void> {
    for (const seat of this.seats) seat.restart()
  }

  /** SIGKILL of all processes, or of a machine that keeps what it was told to sync; one of them was in the middle of a transaction. */
  async restart(random: SeededRandom): Promise<void> {
    const victim = new Database(this.path)
    victim.pragma('cache_size = 1')
    victim.pragma('cache_spill = 1')
    victim.exec('BEGIN IMMEDIATE')
    victim.exec("UPDATE holdfast_job SET state = 'queued', token = NULL, payload = zeroblob(20000)")
    victim.exec('DELETE FROM holdfast_archive')
    const old = this.path
    this.copies += 1
    this.path = join(dirname(old), `copy-${this.copies}.db`)
    copyFileSync(old, this.path)
    if (existsSync(`${old}-wal`)) copyFileSync(`${old}-wal`, `${this.path}-wal`)
    if (random.chance(0.5)) copyFileSync(`${old}-shm`, `${this.path}-shm`)
    victim.close()
    this.observing.close()
    for (const seat of this.seats) seat.restart()
    for (const suffix of ['', '-wal', '-shm']) rmSync(old + suffix, { force: true })
    this.observer = new Database(this.path)
  }

  async look(): Promise<Glimpse> {
    const rows = this.observing.prepare(LOOK).all() as readonly LookRow[]
    const lanes = this.observing.prepare('SELECT lane FROM holdfast_lane WHERE paused = 1').all()
    return {
      jobs: new Map(rows.map((row) => [row.id, seen(row)])),
      paused: new Set((lanes as readonly { lane: string }[]).map(({ lane }) => lane)),
    }
  }

  async recount(): Promise<readonly string[]> {
    const integrity = String(this.observing.pragma('integrity_check', { simple: true }))
    return [...recount(dumpTables(this.observing)), ...(integrity === 'ok' ? [] : [integrity])]
  }

  async end(): Promise<readonly string[]> {
    this.rival?.close()
    this.rival = null
    for (const seat of this.seats) seat.close()
    this.seats = []
    this.observer?.close()
    this.observer = null
    rmSync(dirname(this.path), { recursive: true, force: true })
    return this.met.splice(0)
  }

  private get faulty(): Seat {
    const [seat] = this.seats
    if (seat === undefined) throw new Error('there are no clients')
    return seat
  }

  private get observing(): Database.Database {
    if (this.observer === null) throw new Error('the scenario has not begun')
    return this.observer
  }
}

function seen(row: LookRow): Seen {
  const letter = letterOf(row.state, row.cancel_requested === 1)
  return { state: letter, token: row.token ?? '', attempts: row.attempts, expiresAt: row.lease_expires_at }
}
