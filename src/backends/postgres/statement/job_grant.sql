-- Grants jobs that were picked under the limits of their lane. Read by position in `claim.ts`, as `job_claim`.
--! arrays
--! args: seqs bigint[], ordinal bigint, worker_id text, nonce text, lease_ms bigint
WITH clock AS MATERIALIZED (
  SELECT us / 1000 AS now, us AS now_us
  FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS tick
),
granted AS (
  UPDATE holdfast.job AS job SET
    state = 'running', parked = false, attempts = job.attempts + 1, worker_id = $4, started_at = clock.now,
    updated_at = clock.now, lease_expires_at = clock.now + $6::bigint,
    lease_epoch = greatest(job.lease_epoch + 1, clock.now_us),
    token = greatest(job.lease_epoch + 1, clock.now_us) || ':' || $4::text || ':' || $5::text || '.' || (input.i - 1 + $3::bigint)
  FROM clock, unnest($2::bigint[]) WITH ORDINALITY AS input (seq, i)
  WHERE job.state || '' = 'queued'
--@include by_seq
  RETURNING job.*, input.i - 1 + $3::bigint AS ordinal
)
SELECT 1 AS kind, granted.ordinal AS i, seq, id, type, lane,
  CASE WHEN payload_bytes IS NULL THEN payload::text ELSE E'\\x' || encode(payload_bytes, 'hex') END AS payload,
  attempts, max_attempts, max_attempts_fixed::integer, crashes, max_crashes, retry::text, timeout_ms, deadline_at,
  metadata::text, trace_id, keep_result_ms, lease_epoch, token, clock.now
FROM clock, granted
