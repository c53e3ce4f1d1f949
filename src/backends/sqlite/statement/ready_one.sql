--! arrays
-- Read by position in `row.ts`, as `ready_list`.
SELECT seq, id, type, lane, payload, attempts, max_attempts, max_attempts_fixed, crashes, max_crashes, retry, timeout_ms,
  deadline_at, metadata, trace_id, keep_result_ms, lease_epoch, token
FROM holdfast_job WHERE seq = :seq
