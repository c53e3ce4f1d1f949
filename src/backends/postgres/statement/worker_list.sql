--! args: forget_ms bigint, limit bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
SELECT seen.id, seen.info, seen.beat_at, clock.now FROM clock LEFT JOIN LATERAL (
  SELECT worker.id, worker.info::text AS info, worker.beat_at FROM holdfast.worker AS worker
  WHERE worker.ns = $1 AND worker.beat_at >= clock.now - $2::bigint
  ORDER BY worker.beat_at DESC LIMIT $3::bigint
) AS seen ON true
