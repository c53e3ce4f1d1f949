INSERT INTO holdfast_archive (
  seq, ns, id, lane, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms, attempts,
  max_attempts, max_attempts_fixed, crashes, max_crashes, retry, idempotency_key, metadata, trace_id, replay_of,
  keep_result_ms, token, lease_epoch, worker_id, started_at, finished_at, duration_ms, cancel_requested, last_failure,
  dlq_code, recorded, keep_until, output_until, payload, progress, output
)
SELECT
  seq, ns, id, lane, :state, type, priority, created_at, :now, run_at, deadline_at, timeout_ms, attempts,
  max_attempts, max_attempts_fixed, coalesce(:crashes, crashes), max_crashes, retry, idempotency_key, metadata, trace_id,
  replay_of, keep_result_ms, CASE WHEN :keeps_token THEN token END, lease_epoch, worker_id, started_at, :now,
  :duration_ms, cancel_requested, coalesce(:failure, last_failure, :failure_if_none), :dlq_code,
  max(recorded, :recorded), :keep_until, :output_until, payload, progress, :output
FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = :from AND token IS :token
