-- Each part is counted inside its own index; of running jobs there are never many.
SELECT lane, 'queued' AS state, count(*) AS jobs,
  :now - min(run_at) AS oldest_ms
FROM holdfast_job INDEXED BY holdfast_job_ready
WHERE ns = :ns AND lane = :lane AND state = 'queued' AND parked = 0 GROUP BY lane
UNION ALL
SELECT lane, 'queued', count(*),
  :now - min(run_at)
FROM holdfast_job INDEXED BY holdfast_job_parked
WHERE ns = :ns AND lane = :lane AND state = 'queued' AND parked = 1 GROUP BY lane
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast_job INDEXED BY holdfast_job_due
WHERE ns = :ns AND lane = :lane AND state IN ('scheduled', 'retry_wait') GROUP BY state
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast_job INDEXED BY holdfast_job_lease
WHERE ns = :ns AND lane = :lane AND state = 'running' GROUP BY lane
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast_archive INDEXED BY holdfast_archive_lane
WHERE ns = :ns AND lane = :lane GROUP BY state
