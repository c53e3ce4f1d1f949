/** The tables of a PostgreSQL store, read past it, for a recount of all that is in them. */
import type { Client, ClientConfig } from 'pg'
import { recount, type Tables } from '../sql/recount.ts'
import type { PostgresServer } from '../support/postgres-server.ts'

const COLUMNS = `seq::float8 AS seq, ns, id, lane, state, attempts, max_attempts, lease_epoch::float8 AS lease_epoch,
  idempotency_key, token, worker_id, started_at::float8 AS started_at, cancel_requested`
const QUERIES: Readonly<Record<keyof Tables, string>> = {
  jobs: `SELECT ${COLUMNS}, recorded, lease_expires_at::float8 AS lease_expires_at FROM holdfast.job`,
  archive: `SELECT ${COLUMNS}, history IS NOT NULL AS recorded, coalesce(json_array_length(history), 0) AS history
    FROM holdfast.archive`,
  attempts: 'SELECT job_seq::float8 AS job_seq, lease_epoch::float8 AS lease_epoch FROM holdfast.attempt',
  lines: 'SELECT job_seq::float8 AS job_seq FROM holdfast.job_log',
  keys: 'SELECT ns, lane, key, id FROM holdfast.key',
  counters: 'SELECT ns, lane, state, sum(jobs)::float8 AS jobs FROM holdfast.counter GROUP BY ns, lane, state',
}

/** At one moment: several statements of one transaction. */
export async function dumpTables(client: Client): Promise<Tables> {
  const tables: Record<string, unknown> = {}
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  for (const [name, text] of Object.entries(QUERIES)) tables[name] = (await client.query(text)).rows
  await client.query('COMMIT')
  return tables as unknown as Tables
}

/** What a recount of all tables finds wrong; empty: nothing. */
export async function miscounts(server: PostgresServer, config: ClientConfig = {}): Promise<readonly string[]> {
  const client = await server.connect(config)
  try {
    return recount(await dumpTables(client))
  } finally {
    await client.end()
  }
}
