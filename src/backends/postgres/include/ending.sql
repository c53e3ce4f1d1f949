-- What follows `ended` (the rows of jobs that were taken out, and how they ended): their record, count and key. What else there is of a
-- job that is `recorded` is read from its tables by their indexes: what traces.sql deletes in the same statement is still seen here.
kept AS (
  INSERT INTO holdfast.archive (
    seq, created_at, updated_at, run_at, lease_epoch, finished_at, deadline_at, timeout_ms, keep_result_ms, started_at,
    keep_until, output_until, duration_ms, expiry_day, ns, priority, attempts, max_attempts, crashes, max_crashes,
    max_attempts_fixed, cancel_requested, id, lane, state, type, token, worker_id, idempotency_key, trace_id, replay_of,
    dlq_code, retry, metadata, last_failure, history, log, payload, payload_bytes, progress, progress_bytes, output, output_bytes,
    concurrency_key
  )
  SELECT
    seq, created_at, now, run_at, lease_epoch, now, deadline_at, timeout_ms, keep_result_ms, started_at,
    now + keep_ms, CASE WHEN output IS NOT NULL THEN now + keep_output_ms END,
    CASE WHEN outcome IS NULL THEN duration_ms END,
    -- Less than two days are kept to the millisecond, more to the day.
    CASE WHEN keep_ms >= 172800000 THEN (now + keep_ms) / 86400000 ELSE 0 END,
    ns, priority, attempts, max_attempts, coalesce(new_crashes, crashes), max_crashes, max_attempts_fixed, cancel_requested,
    id, lane, "to", type, CASE WHEN keeps_token <> 0 THEN token END, worker_id, idempotency_key, trace_id, replay_of,
    dlq_code, retry, metadata, coalesce(failure::json, last_failure, failure_if_none::json),
    CASE WHEN recorded OR outcome IS NOT NULL THEN (
      SELECT json_agg(made ORDER BY made.lease_epoch)
      FROM (
        SELECT * FROM holdfast.attempt AS past WHERE past.job_seq = ended.seq
        UNION ALL
        SELECT seq, lease_epoch, started_at, now, duration_ms, attempts, outcome, worker_id, attempt_failure::json
        WHERE outcome IS NOT NULL
      ) AS made
    ) END,
    CASE WHEN recorded THEN (
      SELECT json_agg(json_build_object('lease_epoch', log.lease_epoch, 'number', log.number, 'line', log.line)
        ORDER BY log.lease_epoch, log.number)
      FROM holdfast.job_log AS log WHERE log.job_seq = ended.seq
    ) END,
    payload, payload_bytes, progress, progress_bytes,
    CASE WHEN left(output, 2) <> E'\\x' THEN output::json END,
    CASE WHEN left(output, 2) = E'\\x' THEN decode(substr(output, 3), 'hex') END, concurrency_key
  FROM ended WHERE keep_ms IS NULL OR keep_ms > 0
),
counted AS (
  INSERT INTO holdfast.counter (ns, lane, state, jobs)
  SELECT ns, lane, "to", count(*) FROM ended WHERE keep_ms IS NULL OR keep_ms > 0 GROUP BY 1, 2, 3
),
unkeyed AS (
  DELETE FROM holdfast.key AS key USING ended
  WHERE ended.idempotency_key IS NOT NULL AND ended.keep_ms <= 0
    AND key.ns = ANY (ARRAY[ended.ns]) AND key.lane = ended.lane AND key.key = ended.idempotency_key AND key.id = ended.id
)
