--! args: before bigint, type text, lane text, states text, limit bigint
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed::integer, crashes, max_crashes, retry::text, idempotency_key, concurrency_key, metadata::text, trace_id, replay_of,
  keep_result_ms, lease_epoch, worker_id, started_at, cancel_requested::integer, last_failure::text,
  CASE WHEN progress_bytes IS NULL THEN progress::text ELSE E'\\x' || encode(progress_bytes, 'hex') END AS progress,
  lease_expires_at, NULL::bigint AS finished_at, NULL::text AS dlq_code,
  E'\\x' AS payload, NULL::text AS output
FROM holdfast.job
WHERE seq < $2::bigint AND ns = $1 AND ($3::text IS NULL OR type = $3::text) AND ($4::text IS NULL OR lane = $4::text)
  AND ($5::text IS NULL OR state IN (SELECT json_array_elements_text($5::text::json)))
ORDER BY seq DESC LIMIT $6::bigint
