-- A key is taken first: whoever has it already keeps it, and the job is not written. Sorted, so that two calls with the same
-- keys wait for one another in one order. The state is asked for since the index has not got it: else all of that could be read for the rest.
--! rows: id text, lane text, key text, type text, priority integer, run_at bigint, delay_ms bigint, deadline_at bigint, timeout_ms bigint, max_attempts integer, max_attempts_fixed integer, max_crashes integer, retry json, metadata json, trace_id text, replay_of text, keep_result_ms bigint, payload value, concurrency_key text, admitted integer
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
input AS MATERIALIZED (
  SELECT input.*, coalesce(input.run_at, clock.now + input.delay_ms) AS eligible_at, clock.now
  FROM clock, unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
    $11::integer[], $12::integer[], $13::integer[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[],
    $19::text[], $20::text[], $21::integer[]
  ) WITH ORDINALITY AS input (
    id, lane, key, type, priority, run_at, delay_ms, deadline_at, timeout_ms, max_attempts, max_attempts_fixed, max_crashes,
    retry, metadata, trace_id, replay_of, keep_result_ms, payload, concurrency_key, admitted, i
  )
  -- A lane that counts what it accepts takes only what was admitted.
  WHERE input.admitted <> 0 OR NOT EXISTS (SELECT 1 FROM holdfast.gate AS gate WHERE gate.ns = $1 AND gate.lane = input.lane)
),
taken AS (
  INSERT INTO holdfast.key (ns, lane, key, id)
  SELECT $1, lane, key, id FROM input
  WHERE key IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM holdfast.job AS job WHERE job.state <> ''
--@include by_id
  )
  ORDER BY lane, key
  ON CONFLICT DO NOTHING
  RETURNING id
),
added AS (
  INSERT INTO holdfast.job (
    ns, id, lane, idempotency_key, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms,
    max_attempts, max_attempts_fixed, max_crashes, retry, metadata, trace_id, replay_of, keep_result_ms, payload, payload_bytes,
    concurrency_key
  )
  SELECT
    $1, id, lane, key, CASE WHEN eligible_at > now THEN 'scheduled' ELSE 'queued' END, type, priority, now, now,
    eligible_at, deadline_at, timeout_ms, max_attempts, max_attempts_fixed <> 0, max_crashes, retry::json, metadata::json,
    trace_id, replay_of, keep_result_ms, CASE WHEN left(payload, 2) <> E'\\x' THEN payload::json END,
    CASE WHEN left(payload, 2) = E'\\x' THEN decode(substr(payload, 3), 'hex') END, concurrency_key
  FROM input WHERE key IS NULL OR id IN (SELECT id FROM taken) ORDER BY i
  ON CONFLICT (ns, id) DO NOTHING
  RETURNING id
)
SELECT input.i, input.now FROM input JOIN added ON added.id = input.id
