--! args: limit bigint
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)
UPDATE holdfast.archive AS archive SET output = NULL, output_bytes = NULL, output_until = NULL
FROM (
  SELECT old.id FROM holdfast.archive AS old WHERE old.ns = $1 AND old.output_until <= (SELECT now FROM clock)
  ORDER BY old.output_until LIMIT $2::bigint
) AS input
WHERE archive.output_until + 0 IS NOT NULL
--@include record_by_id
RETURNING 1
