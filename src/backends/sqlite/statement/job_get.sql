SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, concurrency_key, metadata, trace_id, replay_of, keep_result_ms,
  lease_epoch, worker_id, started_at, cancel_requested, last_failure, progress,
  lease_expires_at, NULL AS finished_at, NULL AS dlq_code, payload, NULL AS output
FROM holdfast_job WHERE ns = :ns AND id = :id
UNION ALL
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, concurrency_key, metadata, trace_id, replay_of, keep_result_ms,
  lease_epoch, worker_id, started_at, cancel_requested, last_failure, progress,
  NULL, finished_at, dlq_code, payload, output
FROM holdfast_archive WHERE ns = :ns AND id = :id
LIMIT 1
