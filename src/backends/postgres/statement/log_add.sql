-- The row of the job is held, or its end could overlook what is added meanwhile.
--! rows: id text, token text, number integer, line text
INSERT INTO holdfast.job_log (job_seq, lease_epoch, number, line)
SELECT job.seq, job.lease_epoch, input.number, input.line
FROM unnest($2::text[], $3::text[], $4::integer[], $5::text[]) AS input (id, token, number, line)
JOIN holdfast.job AS job ON job.ns = $1 AND job.id = input.id AND job.state || '' = 'running' AND job.token = input.token
FOR KEY SHARE OF job
ON CONFLICT DO NOTHING
