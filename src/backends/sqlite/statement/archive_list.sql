-- NOT INDEXED: from the newest on by number, stopping at the limit, in place of sorting the whole namespace.
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, concurrency_key, metadata, trace_id, replay_of, keep_result_ms,
  lease_epoch, worker_id, started_at, cancel_requested, last_failure, progress,
  NULL AS lease_expires_at, finished_at, dlq_code, '' AS payload, NULL AS output
FROM holdfast_archive NOT INDEXED
WHERE seq < :before AND ns = :ns AND (:type IS NULL OR type = :type) AND (:state IS NULL OR state = :state)
ORDER BY seq DESC LIMIT :limit
