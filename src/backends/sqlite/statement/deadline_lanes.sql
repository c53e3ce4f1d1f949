-- One look-up a lane, however many jobs wait in it.
WITH RECURSIVE lanes (lane) AS (
  SELECT * FROM (
    SELECT lane FROM holdfast_job INDEXED BY holdfast_job_deadline
    WHERE ns = :ns AND deadline_at IS NOT NULL AND state <> 'running' ORDER BY lane LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT lane FROM holdfast_job INDEXED BY holdfast_job_deadline
    WHERE ns = :ns AND lane > lanes.lane AND deadline_at IS NOT NULL AND state <> 'running' ORDER BY lane LIMIT 1
  ) FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lane FROM lanes WHERE lane IS NOT NULL
