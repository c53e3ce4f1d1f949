-- Those to be forgotten are skipped where another beat has them in hand.
--! rows: id text, info text, forget_ms bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
input AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[]) AS row (id, info, forget_ms)),
forgotten AS (
  DELETE FROM holdfast.worker AS worker WHERE worker.ctid = ANY (ARRAY(
    SELECT old.ctid FROM holdfast.worker AS old
    WHERE old.ns = $1 AND abs((SELECT now FROM clock) - old.beat_at) > (SELECT min(forget_ms) FROM input)
      AND old.id NOT IN (SELECT id FROM input)
    FOR UPDATE SKIP LOCKED
  ))
)
INSERT INTO holdfast.worker AS worker (ns, id, beat_at, info)
SELECT $1, input.id, (SELECT now FROM clock), input.info::json FROM input ORDER BY input.id
ON CONFLICT (ns, id) DO UPDATE SET beat_at = excluded.beat_at, info = excluded.info
