-- Found by primary key, as in a claim.
--! rows: seq bigint
UPDATE holdfast.job AS job SET parked = true
WHERE job.seq = ANY ($2::bigint[]) AND job.ns + 0 = $1 AND job.state || '' = 'queued'
