/**
 * The statements that both dialects have, one file of that name in `sqlite/statement/` and in `postgres/statement/`.
 * A name that is not in the list does not compile; a test compares the list with both folders.
 */
export const SHARED_STATEMENTS = [
  'archive_find',
  'archive_forget',
  'archive_list',
  'archive_list_lane',
  'archive_list_state',
  'archive_prune',
  'attempt_last',
  'attempt_list',
  'cancel_request',
  'deadline_lanes',
  'deadline_passed',
  'due_lanes',
  'due_promote',
  'job_delete',
  'job_end',
  'job_enqueue',
  'job_find',
  'job_find_key',
  'job_get',
  'job_list',
  'job_progress',
  'job_promote',
  'job_release',
  'job_requeue',
  'job_retry',
  'lane_list',
  'lane_pause',
  'lane_resume',
  'lease_expired',
  'lease_forget',
  'lease_held',
  'lease_renew',
  'namespace_add',
  'namespace_find',
  'output_drop',
  'stats_count',
  'stats_count_lane',
] as const

/** Claiming is where the dialects differ: SQLite looks and grants row by row, PostgreSQL in one statement; and a plain enqueue. */
export const SQLITE_STATEMENTS = ['due_next', 'lane_find', 'lease_grant', 'ready_first', 'ready_list'] as const
export const POSTGRES_STATEMENTS = ['job_add', 'job_claim', 'job_turn'] as const

export type StatementName =
  | (typeof SHARED_STATEMENTS)[number]
  | (typeof SQLITE_STATEMENTS)[number]
  | (typeof POSTGRES_STATEMENTS)[number]
