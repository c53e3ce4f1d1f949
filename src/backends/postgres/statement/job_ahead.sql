-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text, limit bigint
SELECT job.id, (
  SELECT count(*) FROM (
    SELECT other.priority, other.run_at, other.seq FROM holdfast.job AS other
    WHERE other.ns = $1 AND other.lane = job.lane AND other.state = 'queued' AND NOT other.parked
    ORDER BY other.priority DESC, other.run_at, other.seq LIMIT input."limit"
  ) AS head
  WHERE head.priority > job.priority
    OR (head.priority = job.priority AND (head.run_at, head.seq) < (job.run_at, job.seq))
) AS ahead
FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS input (id, "limit", i)
JOIN holdfast.job AS job ON job.state || '' = 'queued' AND job.concurrency_key IS NULL
--@include by_id
