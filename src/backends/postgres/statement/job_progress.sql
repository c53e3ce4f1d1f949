--! rows: id text, token text, progress value
UPDATE holdfast.job AS job SET
  progress = CASE WHEN left(input.progress, 2) <> '\x' THEN input.progress::json END,
  progress_bytes = CASE WHEN left(input.progress, 2) = '\x' THEN decode(substr(input.progress, 3), 'hex') END
FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS input (id, token, progress, i)
WHERE job.ns = $1 AND job.id = input.id AND job.state = 'running' AND job.token = input.token
RETURNING input.i, 0 AS now
