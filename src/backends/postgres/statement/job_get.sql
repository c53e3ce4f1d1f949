--! rows: id text
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed::integer, crashes, max_crashes, retry::text, idempotency_key, concurrency_key, metadata::text, trace_id, replay_of,
  keep_result_ms, lease_epoch, worker_id, started_at, cancel_requested::integer, last_failure::text,
  CASE WHEN progress_bytes IS NULL THEN progress::text ELSE E'\\x' || encode(progress_bytes, 'hex') END AS progress,
  lease_expires_at, NULL::bigint AS finished_at, NULL::text AS dlq_code,
  CASE WHEN payload_bytes IS NULL THEN payload::text ELSE E'\\x' || encode(payload_bytes, 'hex') END AS payload, NULL::text AS output
FROM
--@include jobs_by_id
UNION ALL
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed::integer, crashes, max_crashes, retry::text, idempotency_key, concurrency_key, metadata::text, trace_id, replay_of,
  keep_result_ms, lease_epoch, worker_id, started_at, cancel_requested::integer, last_failure::text,
  CASE WHEN progress_bytes IS NULL THEN progress::text ELSE E'\\x' || encode(progress_bytes, 'hex') END AS progress,
  NULL::bigint AS lease_expires_at, finished_at, dlq_code,
  CASE WHEN payload_bytes IS NULL THEN payload::text ELSE E'\\x' || encode(payload_bytes, 'hex') END AS payload, CASE WHEN output_bytes IS NULL THEN output::text ELSE E'\\x' || encode(output_bytes, 'hex') END AS output
FROM holdfast.archive WHERE ns + 0 = $1 AND id = ANY ($2::text[])
