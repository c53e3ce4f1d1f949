--! rows: id text
SELECT job.id, job.state, job.token, job.cancel_requested::integer
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i) JOIN holdfast.job AS job ON true
--@include by_id
UNION ALL
SELECT archive.id, archive.state, archive.token, archive.cancel_requested::integer
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i)
JOIN holdfast.archive AS archive ON true
--@include record_by_id
