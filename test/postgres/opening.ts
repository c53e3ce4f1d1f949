/** Opens links to a PostgreSQL server for a test, and makes statements for them. */
import { afterEach } from 'vitest'
import { type LinkOptions, openLink } from '#dist/src/backends/postgres/connect.js'
import type { PostgresLink, Prepared } from '#dist/src/backends/postgres/link.js'
import type { PostgresLocation } from '#dist/src/backends/postgres/location.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { systemClock } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'

export interface Warning {
  readonly code: unknown
  readonly message: string
}

const opened = new Set<PostgresLink>()

afterEach(async () => {
  await Promise.all([...opened].map((link) => link.close()))
  opened.clear()
})

/** What the engine hands to a store. */
export function optionsOf(options: Partial<LinkOptions> = {}, warnings: Warning[] = []): LinkOptions {
  return {
    namespace: 'test',
    clock: systemClock,
    random: systemRandom,
    openDeadlineMs: 10_000,
    warn: ({ code }, message) => warnings.push({ code, message }),
    ...options,
  }
}

/** Closed after the test. */
export async function open(
  where: string | PostgresLocation,
  options: Partial<LinkOptions> = {},
  warnings: Warning[] = [],
): Promise<PostgresLink> {
  const location = typeof where === 'string' ? parsePostgresUrl(where) : where
  const link = await openLink(location, optionsOf(options, warnings))
  opened.add(link)
  return link
}

export const statement = (text: string, more: Partial<Prepared> = {}): Prepared => ({ name: 'test', text, ...more })

/** Code, outcome and SQLSTATE of what `work` rejects with. */
export async function failureOf(work: Promise<unknown>): Promise<Readonly<Record<string, unknown>>> {
  try {
    await work
  } catch (error) {
    const { code, message, details } = error as {
      code?: string
      message: string
      details?: { outcome?: string; sqlState?: string }
    }
    return { code, outcome: details?.outcome, sqlState: details?.sqlState, message }
  }
  throw new Error('expected a rejection')
}
