--! rows: id text
SELECT job.id, attempt.attempt, attempt.outcome, attempt.worker_id, attempt.lease_epoch, attempt.started_at,
  attempt.finished_at, attempt.duration_ms, attempt.failure::text
FROM
--@include jobs_by_id
JOIN holdfast.attempt AS attempt ON attempt.job_seq = ANY (ARRAY[job.seq])
UNION ALL
SELECT archive.id, attempt.attempt, attempt.outcome, attempt.worker_id, attempt.lease_epoch, attempt.started_at,
  attempt.finished_at, attempt.duration_ms, attempt.failure::text
FROM holdfast.archive AS archive CROSS JOIN LATERAL json_to_recordset(archive.history) AS attempt (
  attempt integer, outcome text, worker_id text, lease_epoch bigint, started_at bigint, finished_at bigint,
  duration_ms float8, failure json
)
WHERE archive.ns + 0 = $1 AND archive.id = ANY ($2::text[])
ORDER BY 1, 5
