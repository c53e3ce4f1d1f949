--! rows: lane text, reason text, count bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
INSERT INTO holdfast.throttle AS throttle (ns, lane, reason, count, first_at, last_at)
SELECT $1, lane, reason, count, clock.now, clock.now
FROM clock, unnest($2::text[], $3::text[], $4::bigint[]) AS input (lane, reason, count)
ORDER BY lane, reason
ON CONFLICT (ns, lane, reason) DO UPDATE SET count = throttle.count + excluded.count, last_at = excluded.last_at
