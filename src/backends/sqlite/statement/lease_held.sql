--! arrays
-- Read by position in `row.ts`, as `ready_list`.
SELECT seq, id, type, lane, payload, attempts, max_attempts, max_attempts_fixed, crashes, max_crashes, retry, timeout_ms,
  deadline_at, metadata, trace_id, keep_result_ms, lease_epoch, token, :now AS now
FROM holdfast_job INDEXED BY holdfast_job_lease
WHERE ns = :ns AND state = 'running' AND worker_id = :worker_id
