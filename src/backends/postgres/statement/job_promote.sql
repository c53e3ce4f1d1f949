-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
UPDATE holdfast.job AS job SET state = 'queued', run_at = clock.now, updated_at = clock.now
FROM clock, unnest($2::text[]) WITH ORDINALITY AS input (id, i)
WHERE job.state || '' IN ('scheduled', 'retry_wait')
--@include by_id
RETURNING input.i, clock.now
