/** Warns of settings of a server that may lose jobs or slow the store down: each once, and again after it was good. */
import type { Warn } from '../../telemetry.ts'
import type { ServerFacts } from './server-facts.ts'

interface Problem {
  readonly code: 'NO_FSYNC' | 'ASYNCHRONOUS_COMMIT' | 'NO_FULL_PAGE_WRITES' | 'ISOLATION'
  readonly message: string
}

export class SettingsCheck {
  private readonly server: string
  private readonly warn: Warn
  private known: ReadonlySet<string> = new Set()

  constructor(server: string, warn: Warn) {
    this.server = server
    this.warn = warn
  }

  /** Of the server as it is now; tells only what is new. */
  check(facts: ServerFacts): void {
    const problems = problemsOf(facts)
    const before = this.known
    this.known = new Set(problems.map(({ code }) => code))
    for (const { code, message } of problems) {
      if (!before.has(code)) this.warn({ code, server: this.server }, `PostgreSQL at ${this.server} ${message}`)
    }
  }
}

function problemsOf(facts: ServerFacts): readonly Problem[] {
  const problems: Problem[] = []
  if (!facts.isFsync) {
    const message =
      "does not flush to its disk: a crash of the machine may destroy the whole database; set 'fsync = on'"
    problems.push({ code: 'NO_FSYNC', message })
  }
  if (facts.synchronousCommit === 'off') {
    const message =
      "answers before it has flushed: a crash of the server loses the jobs of its last second; set 'synchronous_commit = on' for this role or database"
    problems.push({ code: 'ASYNCHRONOUS_COMMIT', message })
  }
  if (facts.isFsync && !facts.isFullPageWrites) {
    const message = "may be left with torn pages by a power cut; set 'full_page_writes = on'"
    problems.push({ code: 'NO_FULL_PAGE_WRITES', message })
  }
  if (facts.defaultIsolation !== 'read committed') {
    const message = `runs single statements at isolation '${facts.defaultIsolation}', where they fail and are repeated under load; set 'default_transaction_isolation = read committed' for this role`
    problems.push({ code: 'ISOLATION', message })
  }
  return problems
}
