-- The granted jobs, then what the claim saw in the columns of a job: whether chores come first, whether more is ready, when the
-- next is due; and whether a lane has limits.
SELECT 1 AS kind, granted.ordinal AS i, seq, id, type, lane,
  CASE WHEN payload_bytes IS NULL THEN payload::text ELSE E'\\x' || encode(payload_bytes, 'hex') END AS payload,
  attempts, max_attempts, max_attempts_fixed::integer, crashes, max_crashes, retry::text, timeout_ms, deadline_at,
  metadata::text, trace_id, keep_result_ms, lease_epoch, token, clock.now
FROM clock, granted
UNION ALL
SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, state.is_blocked::integer, (
    (SELECT count(*) FROM granted) >= $3::bigint AND EXISTS (
      SELECT 1 FROM lane CROSS JOIN LATERAL (
        SELECT job.seq FROM holdfast.job AS job WHERE job.ns = $1 AND job.lane = lane.lane AND job.state = 'queued'
          AND NOT job.parked
        ORDER BY job.priority DESC, job.run_at, job.seq LIMIT (SELECT count(*) + 1 FROM granted)
      ) AS ready
      WHERE ready.seq NOT IN (SELECT seq FROM granted)
    )
  )::integer, state.is_limited::integer, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, state.due_at, NULL, state.now
FROM state
