-- A line whose number is not above the last one of the lease is known already, or was left out.
INSERT OR IGNORE INTO holdfast_job_log (job_seq, lease_epoch, number, line)
SELECT job.seq, job.lease_epoch, :number, :line FROM holdfast_job AS job
WHERE job.ns = :ns AND job.id = :id AND job.state = 'running' AND job.token = :token
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_job_log AS log
    WHERE log.job_seq = job.seq AND log.lease_epoch = job.lease_epoch AND log.number > :number
  )
