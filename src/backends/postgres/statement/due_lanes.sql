-- One look-up a lane, however many jobs wait in it.
WITH RECURSIVE lanes AS (
  (SELECT lane FROM holdfast.job WHERE ns = $1 AND state IN ('scheduled', 'retry_wait') ORDER BY lane LIMIT 1)
  UNION ALL
  SELECT (
    SELECT job.lane FROM holdfast.job AS job WHERE job.ns = $1 AND job.lane > lanes.lane AND state IN ('scheduled', 'retry_wait')
    ORDER BY job.lane LIMIT 1
  )
  FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lane FROM lanes WHERE lane IS NOT NULL
