--! rows: lane text, limit bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
due AS MATERIALIZED (
  SELECT first.seq FROM clock, unnest($2::text[], $3::bigint[]) AS input (lane, "limit")
  CROSS JOIN LATERAL (
    SELECT job.seq FROM holdfast.job AS job
    WHERE job.ns = $1 AND job.lane = input.lane AND job.state IN ('scheduled', 'retry_wait') AND job.run_at <= clock.now
    ORDER BY job.run_at LIMIT input."limit" FOR UPDATE SKIP LOCKED
  ) AS first
)
UPDATE holdfast.job AS job SET state = 'queued', updated_at = clock.now
FROM due, clock WHERE job.seq = due.seq AND job.ns = $1 AND job.state IN ('scheduled', 'retry_wait')
RETURNING 1
