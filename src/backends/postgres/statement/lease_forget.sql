-- After a reaped lease its token proves nothing any more.
--! rows: id text, token text
UPDATE holdfast.job AS job SET token = NULL
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS input (id, token, i)
WHERE job.state <> 'running' AND job.token = input.token
--@include by_id
RETURNING input.i, 0 AS now
