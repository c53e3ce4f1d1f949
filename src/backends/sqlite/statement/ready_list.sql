-- Hot. Read by position in `row.ts`.
--! bind: ns, lane, limit
--! arrays
SELECT seq, id, type, lane, payload, attempts, max_attempts, max_attempts_fixed, crashes, max_crashes, retry, timeout_ms,
  deadline_at, metadata, trace_id, keep_result_ms, lease_epoch, token
FROM holdfast_job INDEXED BY holdfast_job_ready
WHERE ns = ? AND lane = ? AND state = 'queued' AND parked = 0
ORDER BY priority DESC, run_at, seq LIMIT ?
