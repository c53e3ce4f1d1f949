-- Jobs that were never sent before and have no keys: nothing is in their way, and one that is after all fails the statement. The
-- sequence follows the order of the input.
--! rows: id text, lane text, type text, priority integer, run_at bigint, delay_ms bigint, deadline_at bigint, timeout_ms bigint, max_attempts integer, max_attempts_fixed integer, max_crashes integer, retry json, metadata json, trace_id text, replay_of text, keep_result_ms bigint, payload value
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
added AS (
  INSERT INTO holdfast.job (
    ns, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms,
    max_attempts, max_attempts_fixed, max_crashes, retry, metadata, trace_id, replay_of, keep_result_ms, payload, payload_bytes
  )
  SELECT
    $1, id, lane, CASE WHEN coalesce(input.run_at, now + delay_ms) > now THEN 'scheduled' ELSE 'queued' END, type, priority,
    now, now, coalesce(input.run_at, now + delay_ms), deadline_at, timeout_ms, max_attempts, max_attempts_fixed <> 0,
    max_crashes, retry::json, metadata::json, trace_id, replay_of, keep_result_ms,
    CASE WHEN left(payload, 2) <> E'\\x' THEN payload::json END,
    CASE WHEN left(payload, 2) = E'\\x' THEN decode(substr(payload, 3), 'hex') END
  FROM clock, unnest(
    $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::integer[], $11::integer[], $12::integer[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[],
    $18::text[]
  ) WITH ORDINALITY AS input (
    id, lane, type, priority, run_at, delay_ms, deadline_at, timeout_ms, max_attempts, max_attempts_fixed, max_crashes,
    retry, metadata, trace_id, replay_of, keep_result_ms, payload, i
  )
  ORDER BY i
)
SELECT now FROM clock
