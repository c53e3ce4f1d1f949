-- The attempt that runs, or that completed the job, is read off the job itself.
SELECT id, state, attempts AS attempt, worker_id, lease_epoch, started_at, updated_at, NULL AS finished_at, NULL AS duration_ms
FROM holdfast_job WHERE ns = :ns AND id = :id
UNION ALL
SELECT id, state, attempts, worker_id, lease_epoch, started_at, updated_at, finished_at, duration_ms
FROM holdfast_archive WHERE ns = :ns AND id = :id
LIMIT 1
