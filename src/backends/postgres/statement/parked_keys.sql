-- One look-up a key, however many jobs it has.
--! args: lane text, after text, limit bigint
WITH RECURSIVE keys AS (
  (
    SELECT concurrency_key AS key, 1 AS n FROM holdfast.job
    WHERE ns = $1 AND lane = $2::text AND state = 'queued' AND parked AND concurrency_key > $3::text
    ORDER BY concurrency_key LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT job.concurrency_key FROM holdfast.job AS job
    WHERE job.ns = $1 AND job.lane = $2::text AND job.state = 'queued' AND job.parked AND job.concurrency_key > keys.key
    ORDER BY job.concurrency_key LIMIT 1
  ), n + 1 FROM keys WHERE keys.key IS NOT NULL AND n < $4::bigint
)
SELECT key FROM keys WHERE key IS NOT NULL
