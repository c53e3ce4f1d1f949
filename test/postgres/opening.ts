/** Opens links to a PostgreSQL server for a test, and makes statements for them. */
import { afterEach } from 'vitest'
import { type LinkOptions, openLink } from '#dist/src/backends/postgres/connect.js'
import type { PostgresLink, Prepared } from '#dist/src/backends/postgres/link.js'
import type { PostgresLocation } from '#dist/src/backends/postgres/location.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { storeOptions } from '../support/store-options.ts'

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
  const warn: LinkOptions['warn'] = ({ code }, message) => warnings.push({ code, message })
  return { ...storeOptions('test', { warn }), ...options }
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
