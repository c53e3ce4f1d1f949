-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text, token text, lease_ms bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
UPDATE holdfast.job AS job SET lease_expires_at = clock.now + input.lease_ms
FROM clock, unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS input (id, token, lease_ms, i)
WHERE job.state || '' = 'running' AND job.token = input.token
--@include by_id
RETURNING job.id, job.token, job.cancel_requested::integer
