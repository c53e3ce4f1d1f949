/** A PostgreSQL store of a test: its tables made, opened with what a test does not care about. */
import { readFile } from 'node:fs/promises'
import type { BackendOptions } from '#dist/src/backends/backend.js'
import { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { systemClock } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import type { PostgresServer } from '../support/postgres-server.ts'

export async function makeTables(server: PostgresServer): Promise<void> {
  const text = await readFile(new URL('../../src/backends/postgres/migration/0001-jobs.sql', import.meta.url), 'utf8')
  await server.query(`CREATE SCHEMA holdfast; ${text}`)
}

export function openBackend(
  url: string,
  namespace: string,
  options: Partial<BackendOptions> = {},
): Promise<PostgresBackend> {
  return PostgresBackend.open({
    location: parsePostgresUrl(url),
    namespace,
    clock: systemClock,
    random: systemRandom,
    warn: () => {},
    openDeadlineMs: 10_000,
    ...options,
  })
}
