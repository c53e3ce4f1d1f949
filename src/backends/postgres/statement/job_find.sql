--! rows: id text
SELECT job.id, job.state, job.token, job.cancel_requested::integer
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i) JOIN holdfast.job AS job ON true
--@include by_id
UNION ALL
SELECT found.* FROM unnest($2::text[]) AS input (id) CROSS JOIN LATERAL (
  SELECT archive.id, archive.state, archive.token, archive.cancel_requested::integer
  FROM holdfast.archive AS archive WHERE archive.ns + 0 = $1 AND archive.id = input.id LIMIT 1
) AS found
