-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text, token text, outcome text, delay_ms bigint, duration_ms float, failure json, crashes integer, retry json, max_attempts integer, if_expired integer
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
ended AS (
  UPDATE holdfast.job AS job SET
    state = 'retry_wait', run_at = clock.now + input.delay_ms, updated_at = clock.now, last_failure = input.failure::json,
    crashes = input.crashes, retry = input.retry::json, max_attempts = input.max_attempts, lease_expires_at = NULL,
    recorded = true
  FROM clock, unnest(
    $2::text[], $3::text[], $4::text[], $5::bigint[], $6::float8[], $7::text[], $8::integer[], $9::text[], $10::integer[],
    $11::integer[]
  ) WITH ORDINALITY AS input (id, token, outcome, delay_ms, duration_ms, failure, crashes, retry, max_attempts, if_expired, i)
  WHERE job.state || '' = 'running' AND job.token = input.token
    AND NOT job.cancel_requested AND (input.if_expired = 0 OR job.lease_expires_at <= clock.now)
--@include by_id
  RETURNING job.seq, job.lease_epoch, job.started_at, job.attempts, job.worker_id, clock.now, input.i, input.outcome,
    input.duration_ms, input.failure
),
attempted AS (
  INSERT INTO holdfast.attempt (
    job_seq, lease_epoch, started_at, finished_at, duration_ms, attempt, outcome, worker_id, failure
  )
  SELECT seq, lease_epoch, started_at, now, duration_ms, attempts, outcome, worker_id, failure::json FROM ended
)
SELECT i, now FROM ended
