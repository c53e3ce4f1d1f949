--! rows: id text
UPDATE holdfast.job AS job SET cancel_requested = true
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i)
WHERE job.ns = $1 AND job.id = input.id AND job.state = 'running'
RETURNING input.i, 0 AS now
