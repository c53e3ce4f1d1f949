/** The text of what a migration does beside its own: the schema, the ledger and its rows, and the rights of a role. Pure. */
import type { Migration } from '../sql/migration.ts'
import { inSchema, quoted } from './statement.ts'

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

export const createSchema = (schema: string): string => `CREATE SCHEMA ${quoted(schema)};`

export function createLedger(schema: string): string {
  return `CREATE TABLE ${quoted(schema)}.migration (
  version integer PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  breaking boolean NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);`
}

export const ledgerOf = (schema: string): string =>
  `SELECT version, name, checksum, breaking AS "isBreaking" FROM ${quoted(schema)}.migration ORDER BY version`

/** The migration itself, in the schema of the store. */
export const textOf = ({ text }: Migration, schema: string): string => inSchema(text, schema).trim()

export function recordOf({ version, name, checksum, isBreaking }: Migration, schema: string): string {
  const values = [version, literal(name), literal(checksum), isBreaking].join(', ')
  return `INSERT INTO ${quoted(schema)}.migration (version, name, checksum, breaking) VALUES (${values});`
}

/** For a role that runs or enqueues jobs and changes no table; what later migrations of the same owner add is included. */
export function grants(schema: string, role: string): string {
  const [where, who] = [quoted(schema), quoted(role)]
  const rights = 'SELECT, INSERT, UPDATE, DELETE'
  return [
    `GRANT USAGE ON SCHEMA ${where} TO ${who};`,
    `GRANT ${rights} ON ALL TABLES IN SCHEMA ${where} TO ${who};`,
    `REVOKE INSERT, UPDATE, DELETE ON ${where}.migration FROM ${who};`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA ${where} GRANT ${rights} ON TABLES TO ${who};`,
  ].join('\n')
}
