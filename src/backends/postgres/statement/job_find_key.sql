--! rows: lane text, key text
SELECT key.lane, key.key, key.id, coalesce(
  (SELECT job.state FROM holdfast.job AS job WHERE job.ns = $1 AND job.id = key.id),
  (SELECT archive.state FROM holdfast.archive AS archive WHERE archive.ns + 0 = $1 AND archive.id = key.id LIMIT 1),
  'queued'
) AS state
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS input (lane, key, i)
JOIN holdfast.key AS key
  ON key.ns = ANY (ARRAY[$1 + 0 * input.i::integer]) AND key.lane = input.lane AND key.key = input.key
