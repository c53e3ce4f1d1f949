-- The attempt that runs, or that completed the job, is read off the job itself.
--! rows: id text
SELECT id, state, attempts AS attempt, worker_id, lease_epoch, started_at, updated_at, NULL::bigint AS finished_at,
  NULL::float8 AS duration_ms
FROM
--@include jobs_by_id
UNION ALL
SELECT id, state, attempts, worker_id, lease_epoch, started_at, updated_at, finished_at, duration_ms
FROM holdfast.archive WHERE ns + 0 = $1 AND id = ANY ($2::text[])
