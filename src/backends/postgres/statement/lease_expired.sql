--! args: limit bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
SELECT id, token, worker_id, attempts, max_attempts, crashes, max_crashes, cancel_requested::integer, started_at,
  lease_expires_at, clock.now
FROM clock, holdfast.job
WHERE ns = $1 AND state = 'running' AND lease_expires_at <= clock.now
ORDER BY lease_expires_at LIMIT $2::bigint
