-- One look-up a lane, however many jobs wait in it.
WITH RECURSIVE lanes (lane) AS (
  SELECT * FROM (
    SELECT lane FROM holdfast_job INDEXED BY holdfast_job_due
    WHERE ns = :ns AND state IN ('scheduled', 'retry_wait') ORDER BY lane LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT lane FROM holdfast_job INDEXED BY holdfast_job_due
    WHERE ns = :ns AND lane > lanes.lane AND state IN ('scheduled', 'retry_wait') ORDER BY lane LIMIT 1
  ) FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lane FROM lanes WHERE lane IS NOT NULL
