-- NOT INDEXED: from the newest on by number, stopping at the limit, in place of sorting the whole namespace.
SELECT seq, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts, max_attempts,
  max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, concurrency_key, metadata, trace_id, replay_of, keep_result_ms,
  lease_epoch, worker_id, started_at, cancel_requested, last_failure, progress,
  lease_expires_at, NULL AS finished_at, NULL AS dlq_code, '' AS payload, NULL AS output
FROM holdfast_job NOT INDEXED
WHERE seq < :before AND ns = :ns AND (:lane IS NULL OR lane = :lane) AND (:type IS NULL OR type = :type)
  AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
ORDER BY seq DESC LIMIT :limit
