-- One job must not spoil the view for all. The server's own JSON cannot look into a text with a NUL character or half a surrogate pair, and it shows
-- no time long before Christ: such values are null. Whole pairs are never written as escapes, so every escape of a surrogate is half of one.
CREATE OR REPLACE VIEW holdfast.jobs AS
SELECT namespace, id, lane, type, state, priority, attempts, max_attempts,
  to_timestamp(created_at / 1000.0) AS created_at,
  CASE WHEN run_at >= -62135596800000 THEN to_timestamp(run_at / 1000.0) END AS run_at,
  to_timestamp(started_at / 1000.0) AS started_at, to_timestamp(finished_at / 1000.0) AS finished_at,
  to_timestamp(lease_expires_at / 1000.0) AS lease_expires_at,
  CASE WHEN deadline_at >= -62135596800000 THEN to_timestamp(deadline_at / 1000.0) END AS deadline_at,
  worker_id, idempotency_key, trace_id, replay_of, cancel_requested, dlq_code,
  CASE WHEN metadata::text !~ unreadable THEN metadata END AS metadata,
  CASE WHEN last_failure::text !~ unreadable THEN last_failure END AS last_failure,
  CASE WHEN payload::text !~ unreadable THEN payload END AS payload,
  CASE WHEN progress::text !~ unreadable THEN progress END AS progress,
  CASE WHEN output::text !~ unreadable THEN output END AS output
FROM (
  SELECT namespace.name AS namespace, job.id, job.lane, job.type, job.state, job.priority, job.attempts, job.max_attempts,
    job.created_at, job.run_at, job.started_at, NULL::bigint AS finished_at, job.lease_expires_at, job.deadline_at,
    job.worker_id, job.idempotency_key, job.trace_id, job.replay_of, job.cancel_requested, NULL::text AS dlq_code,
    job.metadata, job.last_failure, job.payload, job.progress, NULL::json AS output,
    E'(?<!\\\\)(?:\\\\\\\\)*\\\\u(?:0000|d[89a-f])'::text AS unreadable
  FROM holdfast.job JOIN holdfast.namespace ON namespace.ns = job.ns
  UNION ALL
  SELECT namespace.name, archive.id, archive.lane, archive.type, archive.state, archive.priority, archive.attempts,
    archive.max_attempts, archive.created_at, archive.run_at, archive.started_at, archive.finished_at, NULL,
    archive.deadline_at, archive.worker_id, archive.idempotency_key, archive.trace_id, archive.replay_of,
    archive.cancel_requested, archive.dlq_code, archive.metadata, archive.last_failure, archive.payload,
    archive.progress, archive.output, E'(?<!\\\\)(?:\\\\\\\\)*\\\\u(?:0000|d[89a-f])'::text
  FROM holdfast.archive JOIN holdfast.namespace ON namespace.ns = archive.ns
) AS record;
