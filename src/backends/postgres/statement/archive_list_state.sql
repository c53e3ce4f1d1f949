--! rows: before bigint, type text, limit bigint, state text
SELECT page.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[]) AS input (before, type, "limit", state)
CROSS JOIN LATERAL (
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed::integer, crashes, max_crashes, retry::text, idempotency_key, concurrency_key, metadata::text, trace_id, replay_of,
  keep_result_ms, lease_epoch, worker_id, started_at, cancel_requested::integer, last_failure::text,
  CASE WHEN progress_bytes IS NULL THEN progress::text ELSE E'\\x' || encode(progress_bytes, 'hex') END AS progress,
  NULL::bigint AS lease_expires_at, finished_at, dlq_code,
  E'\\x' AS payload, NULL::text AS output
FROM holdfast.archive AS archive
WHERE archive.ns = $1 AND archive.state = input.state AND archive.state <> 'completed' AND archive.seq < input.before
  AND (input.type IS NULL OR archive.type = input.type)
ORDER BY archive.seq DESC LIMIT input."limit"
) AS page
