-- A job that ends without a trace; one with attempts or a key on record leaves more behind, see job_end.
--! rows: id text, from text, token text
DELETE FROM holdfast.job AS job
USING unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS input (id, "from", token, i)
WHERE job.state = input."from" AND job.token IS NOT DISTINCT FROM input.token
  AND NOT job.recorded AND job.idempotency_key IS NULL
--@include by_id
RETURNING input.i, 0 AS now
