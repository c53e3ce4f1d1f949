-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text, token text, failure json, crashes integer, if_expired integer
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
ended AS (
  UPDATE holdfast.job AS job SET
    state = 'queued', updated_at = clock.now, last_failure = input.failure::json, crashes = input.crashes,
    lease_expires_at = NULL, recorded = true
  FROM clock, unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::integer[]) WITH ORDINALITY AS input (id, token, failure, crashes, if_expired, i)
  WHERE job.state || '' = 'running' AND job.token = input.token
    AND NOT job.cancel_requested AND (input.if_expired = 0 OR job.lease_expires_at <= clock.now)
--@include by_id
  RETURNING job.seq, job.lease_epoch, job.started_at, job.attempts, job.worker_id, clock.now, input.i, input.failure
),
attempted AS (
  INSERT INTO holdfast.attempt (
    job_seq, lease_epoch, started_at, finished_at, duration_ms, attempt, outcome, worker_id, failure
  )
  SELECT seq, lease_epoch, started_at, now, NULL, attempts, 'crashed', worker_id, failure::json FROM ended
)
SELECT i, now FROM ended
