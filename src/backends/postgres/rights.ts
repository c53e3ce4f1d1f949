/** Which rights on the tables of the store its role lacks, by the catalogs that everybody may read. */
import type { Link } from './link.ts'

/** Partitions go with their table, but for the one that upkeep prunes by name; the ledger is only read. */
const LOOK = `SELECT "right" || ' on ' || c.relname AS missing
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS "right"
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND (NOT c.relispartition OR c.relname = 'archive_rest')
  AND (c.relname <> 'migration' OR "right" = 'SELECT') AND NOT has_table_privilege(c.oid, "right")
ORDER BY c.relname, "right"`

/** Such as `UPDATE on job, DELETE on archive`; empty: nothing is missing. */
export async function missingRights(link: Link, schema: string): Promise<string> {
  const { rows } = await link.query({ name: 'rights', text: LOOK, isOnce: true }, [schema])
  return (rows as readonly { readonly missing: string }[]).map(({ missing }) => missing).join(', ')
}
