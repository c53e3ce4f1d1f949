/**
 * The statements that both dialects have, one file of that name in `sqlite/statement/` and in `postgres/statement/`.
 * A name that is not in the list does not compile; a test compares the list with both folders.
 */
export const SHARED_STATEMENTS = [
  'archive_find',
  'archive_forget',
  'archive_list',
  'archive_list_lane',
  'archive_lanes',
  'archive_list_state',
  'archive_prune',
  'archive_trim',
  'attempt_last',
  'attempt_list',
  'cancel_request',
  'deadline_lanes',
  'deadline_passed',
  'due_lanes',
  'due_promote',
  'gate_drop',
  'gate_list',
  'gate_lock',
  'gate_set',
  'holder_count',
  'job_ahead',
  'job_delete',
  'job_end',
  'job_enqueue',
  'job_find',
  'job_find_key',
  'job_get',
  'job_list',
  'job_note',
  'job_park',
  'job_promote',
  'job_release',
  'job_requeue',
  'job_retry',
  'lane_drop',
  'lane_list',
  'lane_set',
  'lease_expired',
  'lease_forget',
  'lease_held',
  'lease_renew',
  'limit_lock',
  'limit_use',
  'log_add',
  'log_list',
  'namespace_add',
  'namespace_find',
  'output_drop',
  'parked_count',
  'parked_first',
  'parked_keys',
  'ready_keys',
  'stats_count',
  'stats_count_lane',
  'throttle_add',
  'throttle_drop',
  'throttle_list',
  'worker_beat',
  'worker_gone',
  'worker_list',
] as const

/** Claiming is where the dialects differ: SQLite looks and grants row by row, PostgreSQL in one statement; and a plain enqueue. */
export const SQLITE_STATEMENTS = [
  'due_next',
  'job_unpark',
  'lane_find',
  'lease_grant',
  'ready_first',
  'ready_list',
  'ready_one',
] as const
export const POSTGRES_STATEMENTS = ['job_add', 'job_claim', 'job_grant', 'job_turn', 'lane_fence'] as const

export type StatementName =
  | (typeof SHARED_STATEMENTS)[number]
  | (typeof SQLITE_STATEMENTS)[number]
  | (typeof POSTGRES_STATEMENTS)[number]
