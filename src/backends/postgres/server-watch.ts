/**
 * Knows which server the connections lead to. A connection that is new is asked before anything else is sent on it; behind a pooler an
 * old one too, now and then. Another server than before, or the same one after a crash, is a change: the listeners are told at once.
 */
import type { PoolClient, QueryResult } from 'pg'
import type { Clock } from '../../clock.ts'
import type { Changes } from '../changes.ts'
import { sqlStateOf } from './errors.ts'
import { type Exchange, Failed } from './exchange.ts'
import { checkServer, REPORT, readReport, type ServerFacts, type ServerReport, SHORT_REPORT } from './server-facts.ts'
import type { SettingsCheck } from './settings-check.ts'

/** A pooler may lead an old connection to another server without a word. */
const POOLED_REPORT_MS = 1000
/** What a service answers that hides its files. */
const NO_FULL_REPORT: ReadonlySet<unknown> = new Set(['0A000', '42501', '42883', '42P01', '55000'])

const NOTHING_KNOWN: ServerFacts = {
  version: '',
  encoding: '',
  synchronousCommit: 'on',
  isFsync: true,
  isFullPageWrites: true,
  hasSynchronousStandbys: false,
  defaultIsolation: 'read committed',
}

export interface ServerWatchOptions {
  readonly server: string
  readonly exchange: Exchange
  readonly changes: Changes
  readonly settings: SettingsCheck
  readonly clock: Clock
}

export class ServerWatch {
  private readonly options: ServerWatchOptions
  private readonly reports = new WeakMap<PoolClient, ServerReport>()
  private report: ServerReport | undefined
  private reportedAt = 0
  private isReportShort = false
  private isCrashSuspected = false
  private seen = 0

  constructor(options: ServerWatchOptions) {
    this.options = options
  }

  get facts(): ServerFacts {
    return this.report?.facts ?? NOTHING_KNOWN
  }

  /** How many changes there were. */
  get changeCount(): number {
    return this.seen
  }

  /** The server said that it crashed: commits that it had not flushed may be gone, though it is still the same. */
  suspectCrash(): void {
    this.isCrashSuspected = true
  }

  /** Whether something may be sent on it at once. */
  isKnown(client: PoolClient, isPooled: boolean): boolean {
    if (this.report === undefined || this.isCrashSuspected || this.reports.get(client) !== this.report) return false
    return !isPooled || this.options.clock.monotonic() - this.reportedAt < POOLED_REPORT_MS
  }

  /** It led to the server before this one, and may still do so. */
  isOutdated(client: PoolClient): boolean {
    const report = this.reports.get(client)
    return report !== undefined && report !== this.report
  }

  /** Asks who is there. Rejects with Failed, or UNSUPPORTED for a server that cannot serve. */
  async meet(client: PoolClient): Promise<'primary' | 'standby'> {
    const report = readReport((await this.ask(client)).rows[0])
    checkServer(report, this.options.server)
    if (report.isStandby) return 'standby'
    this.reports.set(client, this.accept(report))
    return 'primary'
  }

  private async ask(client: PoolClient): Promise<QueryResult> {
    const { exchange } = this.options
    if (this.isReportShort) return exchange.command(client, SHORT_REPORT, 'transaction')
    try {
      return await exchange.command(client, REPORT, 'transaction')
    } catch (thrown) {
      if (!(thrown instanceof Failed) || !NO_FULL_REPORT.has(sqlStateOf(thrown.verdict.error))) throw thrown
      this.isReportShort = true
      return exchange.command(client, SHORT_REPORT, 'transaction')
    }
  }

  private accept(report: ServerReport): ServerReport {
    const before = this.report
    const isSame = before?.identity === report.identity && !this.isCrashSuspected
    this.reportedAt = this.options.clock.monotonic()
    this.isCrashSuspected = false
    this.options.settings.check(report.facts)
    if (before !== undefined && isSame) return before
    this.report = report
    if (before !== undefined) {
      this.seen += 1
      this.options.changes.announce()
    }
    return report
  }
}
