--! when: has_lines
DELETE FROM holdfast_job_log
WHERE job_seq = (SELECT seq FROM holdfast_job WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token)
  AND (lease_epoch, number) <= (
    SELECT log.lease_epoch, log.number
    FROM holdfast_job AS job JOIN holdfast_job_log AS log ON log.job_seq = job.seq
    WHERE job.ns = :ns AND job.id = :id AND NOT (log.lease_epoch = job.lease_epoch AND log.number >= :first_number)
    ORDER BY log.lease_epoch DESC, log.number DESC LIMIT 1 OFFSET :room
  );

UPDATE holdfast_job SET progress = coalesce(:progress, progress), recorded = max(recorded, :has_lines)
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token
