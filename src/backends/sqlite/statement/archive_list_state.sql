SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, concurrency_key, metadata, trace_id, replay_of, keep_result_ms,
  lease_epoch, worker_id, started_at, cancel_requested, last_failure, progress,
  NULL AS lease_expires_at, finished_at, dlq_code, '' AS payload, NULL AS output
FROM holdfast_archive INDEXED BY holdfast_archive_unsuccessful
WHERE ns = :ns AND state = :state AND state <> 'completed' AND seq < :before AND (:type IS NULL OR type = :type)
ORDER BY seq DESC LIMIT :limit
