INSERT OR IGNORE INTO holdfast_job_log (job_seq, lease_epoch, number, line)
SELECT seq, lease_epoch, :number, :line FROM holdfast_job
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token
