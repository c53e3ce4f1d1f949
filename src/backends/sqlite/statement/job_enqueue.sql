-- Hot: bound by position.
-- `seq`: above every job that is there, live or archived.
-- Nothing is written when the lane counts what it accepts, unless this one was `admitted`, nor when the id or the key is known, live or archived.
--! bind: ns, id, lane, key, type, priority, deadline_at, timeout_ms, max_attempts, max_attempts_fixed, max_crashes, retry, metadata, trace_id, replay_of, keep_result_ms, concurrency_key, payload, run_at, delay_ms, now, ns, id, ns, lane, key, admitted, ns, lane
INSERT INTO holdfast_job (
  seq, ns, id, lane, idempotency_key, state, type, priority, created_at, updated_at, run_at, deadline_at, timeout_ms,
  max_attempts, max_attempts_fixed, max_crashes, retry, metadata, trace_id, replay_of, keep_result_ms, concurrency_key, payload,
  attempts, crashes, lease_epoch, cancel_requested, recorded
)
SELECT
  max(
    coalesce((SELECT max(seq) FROM holdfast_job), 0),
    coalesce((SELECT max(seq) FROM holdfast_archive), 0)
  ) + 1,
  ?, ?, ?, ?, CASE WHEN eligible.run_at > eligible.now THEN 'scheduled' ELSE 'queued' END, ?, ?,
  eligible.now, eligible.now, eligible.run_at, ?, ?,
  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  0, 0, 0, 0, 0
FROM (SELECT now, coalesce(?, now + ?) AS run_at FROM (SELECT ? AS now)) AS eligible
WHERE NOT EXISTS (SELECT 1 FROM holdfast_archive WHERE ns = ? AND id = ?)
  AND NOT EXISTS (SELECT 1 FROM holdfast_archive WHERE ns = ? AND lane = ? AND idempotency_key = ?)
  AND (? <> 0 OR NOT EXISTS (SELECT 1 FROM holdfast_gate WHERE ns = ? AND lane = ?))
ON CONFLICT DO NOTHING
