-- Read by position in `row.ts`.
--! arrays
--! args: worker_id text
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
SELECT seq, id, type, lane, 
  CASE WHEN payload_bytes IS NULL THEN payload::text ELSE E'\\x' || encode(payload_bytes, 'hex') END AS payload,
  attempts, max_attempts,
  max_attempts_fixed::integer, crashes, max_crashes, retry::text, timeout_ms, deadline_at, metadata::text, trace_id,
  keep_result_ms, lease_epoch, token, clock.now
FROM clock, holdfast.job WHERE ns = $1 AND state = 'running' AND worker_id = $2
