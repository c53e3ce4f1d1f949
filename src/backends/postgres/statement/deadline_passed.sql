--! rows: lane text, limit bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
SELECT late.* FROM clock, unnest($2::text[], $3::bigint[]) AS input (lane, "limit")
CROSS JOIN LATERAL (
  SELECT job.id, job.state, job.token FROM holdfast.job AS job
  WHERE job.ns = $1 AND job.lane = input.lane AND job.deadline_at IS NOT NULL AND job.state <> 'running'
    AND job.deadline_at <= clock.now
  ORDER BY job.deadline_at LIMIT input."limit"
) AS late
