--! rows: id text
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
UPDATE holdfast.job AS job SET state = 'queued', run_at = clock.now, updated_at = clock.now
FROM clock, unnest($2::text[]) WITH ORDINALITY AS input (id, i)
WHERE job.ns = $1 AND job.id = input.id AND job.state IN ('scheduled', 'retry_wait')
RETURNING input.i, clock.now
