SELECT :id AS id, attempt, outcome, worker_id, lease_epoch, started_at, finished_at, duration_ms, failure
FROM holdfast_attempt
WHERE job_seq = coalesce(
  (SELECT seq FROM holdfast_job WHERE ns = :ns AND id = :id),
  (SELECT seq FROM holdfast_archive WHERE ns = :ns AND id = :id)
)
ORDER BY lease_epoch
