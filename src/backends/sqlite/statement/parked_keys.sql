-- One look-up a key, however many jobs it has.
WITH RECURSIVE keys (key, n) AS (
  SELECT * FROM (
    SELECT concurrency_key, 1 FROM holdfast_job INDEXED BY holdfast_job_parked
    WHERE ns = :ns AND lane = :lane AND state = 'queued' AND parked = 1 AND concurrency_key > :after
    ORDER BY concurrency_key LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT concurrency_key FROM holdfast_job INDEXED BY holdfast_job_parked
    WHERE ns = :ns AND lane = :lane AND state = 'queued' AND parked = 1 AND concurrency_key > keys.key
    ORDER BY concurrency_key LIMIT 1
  ), n + 1 FROM keys WHERE keys.key IS NOT NULL AND n < :limit
)
SELECT key FROM keys WHERE key IS NOT NULL
