-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text, limit bigint
SELECT me.id, (
  SELECT count(*) FROM (
    SELECT job.priority, job.run_at, job.seq FROM holdfast.job AS job
    WHERE job.ns = $1 AND job.lane = me.lane AND job.state = 'queued' AND NOT job.parked
    ORDER BY job.priority DESC, job.run_at, job.seq LIMIT input."limit"
  ) AS head
  WHERE head.priority > me.priority
    OR (head.priority = me.priority AND (head.run_at, head.seq) < (me.run_at, me.seq))
) AS ahead
FROM unnest($2::text[], $3::bigint[]) AS input (id, "limit")
JOIN holdfast.job AS me ON me.ns = $1 AND me.id = input.id AND me.state || '' = 'queued' AND me.concurrency_key IS NULL
