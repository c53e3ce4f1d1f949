--! when: outcome kept
INSERT INTO holdfast_attempt (
  job_seq, lease_epoch, attempt, outcome, worker_id, started_at, finished_at, duration_ms, failure
)
SELECT seq, lease_epoch, attempts, :outcome, worker_id, started_at, :now, :duration_ms, :attempt_failure
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = :from AND token IS :token AND (:if_expired = 0 OR lease_expires_at <= :now);

--! when: kept
INSERT INTO holdfast_archive (
  seq, ns, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts,
  max_attempts, max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, metadata, trace_id, replay_of,
  keep_result_ms, token, lease_epoch, worker_id, started_at, finished_at, duration_ms, cancel_requested, last_failure,
  dlq_code, recorded, keep_until, output_until, payload, progress, output, concurrency_key
)
SELECT
  seq, ns, id, lane, :to, type, priority, created_at, :now, run_at, deadline_at, timeout_ms, attempts,
  max_attempts, max_attempts_fixed, coalesce(:crashes, crashes), max_crashes, retry, idempotency_key, metadata, trace_id,
  replay_of, keep_result_ms, CASE WHEN :keeps_token THEN token END, lease_epoch, worker_id, started_at, :now,
  CASE WHEN :outcome IS NULL THEN :duration_ms END, cancel_requested, coalesce(:failure, last_failure, :failure_if_none),
  :dlq_code, CASE WHEN :outcome IS NULL THEN recorded ELSE 1 END, :now + :keep_ms,
  CASE WHEN :output IS NOT NULL THEN :now + :keep_output_ms END, payload, progress, :output, concurrency_key
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = :from AND token IS :token AND (:if_expired = 0 OR lease_expires_at <= :now);

--! when: dropped
DELETE FROM holdfast_attempt WHERE job_seq = (
  SELECT seq FROM holdfast_job
  WHERE ns = :ns AND id = :id AND state = :from AND token IS :token AND (:if_expired = 0 OR lease_expires_at <= :now)
    AND recorded = 1
);

--! when: dropped
DELETE FROM holdfast_job_log WHERE job_seq = (
  SELECT seq FROM holdfast_job
  WHERE ns = :ns AND id = :id AND state = :from AND token IS :token AND (:if_expired = 0 OR lease_expires_at <= :now)
    AND recorded = 1
);

DELETE FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = :from AND token IS :token AND (:if_expired = 0 OR lease_expires_at <= :now)
