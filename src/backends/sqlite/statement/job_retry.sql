INSERT INTO holdfast_attempt (
  job_seq, lease_epoch, attempt, outcome, worker_id, started_at, finished_at, duration_ms, failure
)
SELECT seq, lease_epoch, attempts, :outcome, worker_id, started_at, :now, :duration_ms, :failure
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
  AND (:if_expired = 0 OR lease_expires_at <= :now);

UPDATE holdfast_job SET
  state = 'retry_wait', run_at = :now + :delay_ms, updated_at = :now, last_failure = :failure, crashes = :crashes,
  retry = :retry, max_attempts = :max_attempts, lease_expires_at = NULL, recorded = 1
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
  AND (:if_expired = 0 OR lease_expires_at <= :now)
