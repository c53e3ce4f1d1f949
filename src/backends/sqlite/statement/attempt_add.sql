INSERT INTO holdfast_attempt (
  job_seq, lease_epoch, attempt, outcome, worker_id, started_at, finished_at, duration_ms, failure
)
SELECT seq, lease_epoch, attempts, :outcome, worker_id, started_at, :now, :duration_ms, :failure
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND (cancel_requested = 0 OR :even_if_cancelled)
