/** A PostgreSQL store of a test: its tables made, opened with what a test does not care about. */
import type { BackendOptions } from '#dist/src/backends/backend.js'
import { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import type { PostgresServer } from '../support/postgres-server.ts'
import { storeOptions } from '../support/store-options.ts'

export async function makeTables(server: PostgresServer): Promise<void> {
  const store = await openBackend(server.url, 'first')
  await store.close()
}

export function openBackend(
  url: string,
  namespace: string,
  options: Partial<BackendOptions> = {},
): Promise<PostgresBackend> {
  return PostgresBackend.open({ ...storeOptions(namespace, options), location: parsePostgresUrl(url) })
}
