SELECT attempt, outcome, worker_id, lease_epoch, started_at, finished_at, duration_ms, failure
FROM holdfast_attempt WHERE job_seq = :seq ORDER BY lease_epoch
