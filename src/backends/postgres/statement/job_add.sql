-- New jobs without keys that differ only in what they are called and carry: two arrays to unnest, and no look for what is known. An id
-- that is known fails all of it; a lane that counts what it accepts gets none this way.
--! args: lane text, type text, priority integer, run_at bigint, delay_ms bigint, deadline_at bigint, timeout_ms bigint, max_attempts integer, max_attempts_fixed integer, max_crashes integer, keep_result_ms bigint
--! rows: id text, payload value
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
added AS (
  INSERT INTO holdfast.job (
    ns, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, max_attempts, max_attempts_fixed,
    max_crashes, keep_result_ms, payload, payload_bytes
  )
  SELECT
    $1, id, $2::text, CASE WHEN coalesce($5::bigint, now + $6::bigint) > now THEN 'scheduled' ELSE 'queued' END, $3::text,
    $4::integer, now, now, coalesce($5::bigint, now + $6::bigint), $7::bigint, $8::bigint, $9::integer, $10::integer <> 0,
    $11::integer, $12::bigint, CASE WHEN left(payload, 2) <> E'\\x' THEN payload::json END,
    CASE WHEN left(payload, 2) = E'\\x' THEN decode(substr(payload, 3), 'hex') END
  FROM clock, unnest($13::text[], $14::text[]) WITH ORDINALITY AS input (id, payload, i)
  WHERE NOT EXISTS (SELECT 1 FROM holdfast.gate AS gate WHERE gate.ns = $1 AND gate.lane = $2::text)
  ORDER BY i
  RETURNING 1
)
SELECT now, (SELECT count(*) FROM added)::integer AS written FROM clock
