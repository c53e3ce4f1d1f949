SELECT me.id, (
  SELECT count(*) FROM (
    SELECT priority, run_at, seq FROM holdfast_job INDEXED BY holdfast_job_ready
    WHERE ns = :ns AND lane = me.lane AND state = 'queued' AND parked = 0 ORDER BY priority DESC, run_at LIMIT :limit
  ) AS head
  WHERE head.priority > me.priority
    OR (head.priority = me.priority AND (head.run_at, head.seq) < (me.run_at, me.seq))
) AS ahead
FROM holdfast_job AS me WHERE me.ns = :ns AND me.id = :id AND me.state = 'queued' AND me.concurrency_key IS NULL
