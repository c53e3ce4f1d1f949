SELECT id, token, worker_id, attempts, max_attempts, crashes, max_crashes, cancel_requested, started_at, lease_expires_at,
  :now AS now
FROM holdfast_job INDEXED BY holdfast_job_lease
WHERE ns = :ns AND state = 'running' AND lease_expires_at <= :now
ORDER BY lease_expires_at LIMIT :limit
