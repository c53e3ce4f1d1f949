-- Live jobs are counted inside their indexes; of the archive there are counters.
--! rows: lane text
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
SELECT lane, 'queued' AS state, count(*) AS jobs, (SELECT now FROM clock) - min(run_at) AS oldest_ms
FROM holdfast.job WHERE ns = $1 AND lane = ANY ($2::text[]) AND state = 'queued' AND NOT parked GROUP BY lane
UNION ALL
SELECT lane, 'queued', count(*), (SELECT now FROM clock) - min(run_at)
FROM holdfast.job WHERE ns = $1 AND lane = ANY ($2::text[]) AND state = 'queued' AND parked GROUP BY lane
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast.job
WHERE ns = $1 AND lane = ANY ($2::text[]) AND state IN ('scheduled', 'retry_wait') GROUP BY lane, state
UNION ALL
SELECT lane, state, count(*), NULL FROM holdfast.job
WHERE ns = $1 AND lane = ANY ($2::text[]) AND state = 'running' GROUP BY lane, state
UNION ALL
SELECT lane, state, sum(jobs)::bigint, NULL FROM holdfast.counter
WHERE ns = $1 AND lane = ANY ($2::text[]) GROUP BY lane, state HAVING sum(jobs) <> 0
