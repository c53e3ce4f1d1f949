-- The counters tell at once that nothing is too many. Of two at the same time each removes only what is older than all that stay.
--! args: lane text, state text, count bigint, limit bigint
WITH last AS MATERIALIZED (
  SELECT kept.seq FROM holdfast.archive AS kept
  WHERE kept.ns = $1 AND kept.lane = $2::text AND kept.state = $3::text
    AND (SELECT sum(jobs) FROM holdfast.counter WHERE ns = $1 AND lane = $2::text AND state = $3::text) > $4::bigint
  ORDER BY kept.seq DESC LIMIT 1 OFFSET $4::bigint
),
picked AS MATERIALIZED (
  SELECT old.ns, old.lane, old.seq FROM holdfast.archive AS old
  WHERE old.ns = $1 AND old.lane = $2::text AND old.state = $3::text AND old.seq <= (SELECT seq FROM last)
  ORDER BY old.seq LIMIT $5::bigint FOR UPDATE SKIP LOCKED
),
gone AS (
  DELETE FROM holdfast.archive AS archive USING picked
  WHERE archive.ns = ANY (ARRAY[picked.ns]) AND archive.lane = picked.lane AND archive.seq = picked.seq
  RETURNING archive.ns, archive.lane, archive.state, archive.id, archive.idempotency_key
),
--@include forgetting
