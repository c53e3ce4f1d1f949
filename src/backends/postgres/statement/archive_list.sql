-- From lane to lane in the index, the newest of each, in place of sorting all that is kept.
--! args: before bigint, type text, limit bigint, state text
WITH RECURSIVE lanes AS (
  (SELECT lane FROM holdfast.archive WHERE ns = $1 ORDER BY lane LIMIT 1)
  UNION ALL
  SELECT (
    SELECT archive.lane FROM holdfast.archive AS archive WHERE archive.ns = $1 AND archive.lane > lanes.lane
    ORDER BY archive.lane LIMIT 1
  )
  FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT page.* FROM lanes CROSS JOIN LATERAL (
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed::integer, crashes, max_crashes, retry::text, idempotency_key, concurrency_key, metadata::text, trace_id, replay_of,
  keep_result_ms, lease_epoch, worker_id, started_at, cancel_requested::integer, last_failure::text,
  CASE WHEN progress_bytes IS NULL THEN progress::text ELSE E'\\x' || encode(progress_bytes, 'hex') END AS progress,
  NULL::bigint AS lease_expires_at, finished_at, dlq_code,
  E'\\x' AS payload, NULL::text AS output
FROM holdfast.archive AS archive
WHERE archive.ns = $1 AND archive.lane = lanes.lane AND archive.seq < $2::bigint
  AND ($3::text IS NULL OR archive.type = $3::text) AND ($5::text IS NULL OR archive.state = $5::text)
ORDER BY archive.seq DESC LIMIT $4::bigint
) AS page
WHERE lanes.lane IS NOT NULL
ORDER BY page.seq DESC LIMIT $4::bigint
