UPDATE holdfast_job SET
  state = 'running', attempts = :attempts, lease_epoch = :lease_epoch, token = :token, worker_id = :worker_id,
  started_at = :now, updated_at = :now, lease_expires_at = :lease_expires_at
WHERE seq = :seq AND state = 'queued'
