-- Takes the job out of the hot table, and puts it with its attempts into the archive unless it is not to be kept.
--! rows: id text, from text, token text, to text, keep_ms bigint, outcome text, attempt_failure json, duration_ms float, failure json, failure_if_none json, crashes integer, dlq_code text, output value, keep_output_ms bigint, keeps_token integer, if_expired integer
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
ended AS (
  DELETE FROM holdfast.job AS job
  USING clock, unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::float8[], $10::text[],
    $11::text[], $12::integer[], $13::text[], $14::text[], $15::bigint[], $16::integer[], $17::integer[]
  ) WITH ORDINALITY AS input (
    id, "from", token, "to", keep_ms, outcome, attempt_failure, duration_ms, failure, failure_if_none, crashes, dlq_code,
    output, keep_output_ms, keeps_token, if_expired, i
  )
  WHERE job.state = input."from" AND job.token IS NOT DISTINCT FROM input.token
    AND (input.if_expired = 0 OR job.lease_expires_at <= clock.now)
--@include by_id
  RETURNING job.*, clock.now, input.i, input."to", input.keep_ms, input.outcome, input.attempt_failure, input.duration_ms,
    input.failure, input.failure_if_none, input.crashes AS new_crashes, input.dlq_code, input.output, input.keep_output_ms,
    input.keeps_token
),
--@include traces,
--@include ending
SELECT i, now FROM ended
