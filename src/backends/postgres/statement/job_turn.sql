-- Ends jobs that completed and grants what is ready, in one statement and one commit. Jobs with attempts or lines on record are left to
-- job_end: what deletes these would cost every turn, though few have any. Read by position in `claim.ts`.
-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! arrays
--! args: lanes text[], limit bigint, worker_id text, nonce text, lease_ms bigint, force integer, ordinal bigint
--! rows: id text, token text, keep_ms bigint, duration_ms float, output value, keep_output_ms bigint
WITH clock AS MATERIALIZED (
  SELECT us / 1000 AS now, us AS now_us
  FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS tick
),
ended AS (
  DELETE FROM holdfast.job AS job
  USING clock, unnest($9::text[], $10::text[], $11::bigint[], $12::float8[], $13::text[], $14::bigint[]) WITH ORDINALITY
    AS input (id, token, keep_ms, duration_ms, output, keep_output_ms, i)
  WHERE job.state || '' = 'running' AND job.token = input.token AND NOT job.recorded
--@include by_id
  RETURNING job.*, clock.now, input.i, 'completed'::text AS "to", input.keep_ms, NULL::text AS outcome,
    NULL::text AS attempt_failure, input.duration_ms, NULL::text AS failure, NULL::text AS failure_if_none,
    NULL::integer AS new_crashes, NULL::text AS dlq_code, input.output, input.keep_output_ms, 1 AS keeps_token
),
--@include ending,
--@include claim
--@include grant
UNION ALL
SELECT 0, ended.i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ended.now
FROM ended
