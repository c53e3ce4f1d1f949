-- Each part is counted inside its own index.
SELECT lane, 'queued' AS state, count(*) AS jobs,
  :now - min(run_at) AS oldest_ms
FROM holdfast_job INDEXED BY holdfast_job_ready
WHERE ns = :ns AND state = 'queued' AND parked = 0 GROUP BY lane
UNION ALL
SELECT lane, 'queued', count(*),
  :now - min(run_at)
FROM holdfast_job INDEXED BY holdfast_job_parked
WHERE ns = :ns AND state = 'queued' AND parked = 1 GROUP BY lane
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast_job INDEXED BY holdfast_job_due
WHERE ns = :ns AND state IN ('scheduled', 'retry_wait') GROUP BY lane, state
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast_job INDEXED BY holdfast_job_lease
WHERE ns = :ns AND state = 'running' GROUP BY lane, state
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast_archive INDEXED BY holdfast_archive_lane
WHERE ns = :ns GROUP BY lane, state
