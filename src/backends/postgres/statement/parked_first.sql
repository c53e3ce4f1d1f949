--! rows: lane text, key text, limit bigint
SELECT first.* FROM unnest($2::text[], $3::text[], $4::bigint[]) AS input (lane, key, "limit")
CROSS JOIN LATERAL (
  SELECT job.seq, job.id, job.concurrency_key AS key, job.priority, job.run_at FROM holdfast.job AS job
  WHERE job.ns = $1 AND job.lane = input.lane AND job.concurrency_key = input.key AND job.state = 'queued' AND job.parked
  ORDER BY job.priority DESC, job.run_at, job.seq LIMIT input."limit"
) AS first
