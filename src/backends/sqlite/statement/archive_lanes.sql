-- One look-up a lane, however many jobs ended in it.
WITH RECURSIVE lanes (lane) AS (
  SELECT * FROM (
    SELECT lane FROM holdfast_archive INDEXED BY holdfast_archive_lane WHERE ns = :ns ORDER BY lane LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT lane FROM holdfast_archive INDEXED BY holdfast_archive_lane
    WHERE ns = :ns AND lane > lanes.lane ORDER BY lane LIMIT 1
  ) FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lane FROM lanes WHERE lane IS NOT NULL
