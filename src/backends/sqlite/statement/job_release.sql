--! when: started
INSERT INTO holdfast_attempt (
  job_seq, lease_epoch, attempt, outcome, worker_id, started_at, finished_at, duration_ms, failure
)
SELECT seq, lease_epoch, attempts, 'released', worker_id, started_at, :now, :duration_ms, NULL
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
  AND (:if_expired = 0 OR lease_expires_at <= :now);

UPDATE holdfast_job SET
  state = 'queued', attempts = attempts - 1, updated_at = :now, lease_expires_at = NULL,
  recorded = max(recorded, :started)
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
  AND (:if_expired = 0 OR lease_expires_at <= :now)
