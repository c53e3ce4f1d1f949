-- Only of what goes row by row; the days with a partition of their own go with it.
--! args: limit bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now),
gone AS (
  DELETE FROM holdfast.archive_rest AS archive
  WHERE archive.ctid = ANY (ARRAY(
    SELECT old.ctid FROM holdfast.archive_rest AS old WHERE old.ns = $1 AND old.keep_until <= (SELECT now FROM clock)
    ORDER BY old.keep_until LIMIT $2::bigint FOR UPDATE SKIP LOCKED
  ))
  RETURNING archive.ns, archive.lane, archive.state, archive.id, archive.idempotency_key
),
--@include forgetting
