INSERT INTO holdfast_attempt (
  job_seq, lease_epoch, attempt, outcome, worker_id, started_at, finished_at, duration_ms, failure
)
SELECT seq, lease_epoch, attempts, 'crashed', worker_id, started_at, :now, NULL, :failure
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
  AND (:if_expired = 0 OR lease_expires_at <= :now);

UPDATE holdfast_job SET
  state = 'queued', updated_at = :now, last_failure = :failure, crashes = :crashes, lease_expires_at = NULL, recorded = 1
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
  AND (:if_expired = 0 OR lease_expires_at <= :now)
