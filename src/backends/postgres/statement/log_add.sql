-- The row of the job is held, or its end could overlook what is added meanwhile. A line whose number is not above the last one of the
-- lease is known already, or was left out.
--! rows: id text, token text, number integer, line text
INSERT INTO holdfast.job_log (job_seq, lease_epoch, number, line)
SELECT job.seq, job.lease_epoch, input.number, input.line
FROM unnest($2::text[], $3::text[], $4::integer[], $5::text[]) WITH ORDINALITY AS input (id, token, number, line, i)
JOIN holdfast.job AS job ON job.state || '' = 'running' AND job.token = input.token
--@include by_id
WHERE NOT EXISTS (
  SELECT 1 FROM holdfast.job_log AS log
  WHERE log.job_seq = ANY (ARRAY[job.seq]) AND log.lease_epoch = job.lease_epoch AND log.number > input.number
)
FOR KEY SHARE OF job
ON CONFLICT DO NOTHING
