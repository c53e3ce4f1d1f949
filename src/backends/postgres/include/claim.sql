-- What a claim does, after `clock`: looks whether chores come first, picks, locks, grants. The limit holds under any plan, since
-- what is picked is materialised. Grants go by primary key alone (by_seq), whatever the planner believes of the table: `|| ''` keeps it from
-- an index by which it would read all that is ready.
-- No lane has this name: it locks no row, but makes the statement one that `lane_fence` waits for and that waits for it, before it looks.
fence AS MATERIALIZED (
  SELECT 1 FROM holdfast.lane AS policy WHERE policy.ns = $1 AND policy.lane = '' FOR KEY SHARE
),
policy AS MATERIALIZED (
  SELECT policy.lane, policy.paused FROM holdfast.lane AS policy
  WHERE policy.ns = $1 AND policy.lane = ANY ($2::text[]) AND (policy.paused OR policy.limited)
    AND NOT EXISTS (SELECT FROM fence)
),
open AS MATERIALIZED (
  SELECT input.lane FROM unnest($2::text[]) AS input (lane)
  WHERE NOT EXISTS (SELECT FROM policy WHERE policy.lane = input.lane AND policy.paused)
),
-- Those with limits are claimed one by one, see `limited.ts`.
lane AS MATERIALIZED (
  SELECT open.lane FROM open WHERE NOT EXISTS (SELECT FROM policy WHERE policy.lane = open.lane)
),
chore AS MATERIALIZED (
  SELECT
    (
      SELECT min(next.run_at) FROM open CROSS JOIN LATERAL (
        SELECT job.run_at FROM holdfast.job AS job
        WHERE job.ns = $1 AND job.lane = open.lane AND job.state IN ('scheduled', 'retry_wait')
        ORDER BY job.run_at LIMIT 1
      ) AS next
    ) AS due_at,
    (
      SELECT min(next.deadline_at) FROM open CROSS JOIN LATERAL (
        SELECT job.deadline_at FROM holdfast.job AS job
        WHERE job.ns = $1 AND job.lane = open.lane AND job.deadline_at IS NOT NULL AND job.state <> 'running'
        ORDER BY job.deadline_at LIMIT 1
      ) AS next
    ) AS late_at
),
state AS MATERIALIZED (
  SELECT clock.now, chore.due_at, limits.exist AS is_limited, $7::integer = 0 AND (
      limits.exist
      OR least(chore.due_at, chore.late_at) IS NOT NULL AND least(chore.due_at, chore.late_at) <= clock.now
    ) AS is_blocked
  FROM clock, chore, (SELECT EXISTS (SELECT FROM policy WHERE NOT policy.paused) AS exist) AS limits
),
picked AS MATERIALIZED (
  SELECT ready.seq FROM lane CROSS JOIN LATERAL (
    SELECT job.seq FROM holdfast.job AS job
    WHERE job.ns = $1 AND job.lane = lane.lane AND job.state = 'queued' AND NOT job.parked
    ORDER BY job.priority DESC, job.run_at, job.seq
    LIMIT $3::bigint FOR UPDATE SKIP LOCKED
  ) AS ready
  WHERE NOT (SELECT is_blocked FROM state)
  LIMIT $3::bigint
),
granted AS (
  UPDATE holdfast.job AS job SET
    state = 'running', attempts = job.attempts + 1, worker_id = $4, started_at = clock.now, updated_at = clock.now,
    lease_expires_at = clock.now + $6::bigint, lease_epoch = greatest(job.lease_epoch + 1, clock.now_us),
    token = greatest(job.lease_epoch + 1, clock.now_us) || ':' || $4::text || ':' || $5::text || '.' || (input.i - 1 + $8::bigint)
  FROM clock, unnest(ARRAY(SELECT seq FROM picked)) WITH ORDINALITY AS input (seq, i)
  WHERE job.state || '' = 'queued'
--@include by_seq
  RETURNING job.*, input.i - 1 + $8::bigint AS ordinal
)
