-- Hot: bound by position.
UPDATE holdfast_job SET
  state = 'running', attempts = ?, lease_epoch = ?, token = ?, worker_id = ?, started_at = ?, updated_at = ?,
  lease_expires_at = ?
WHERE seq = ? AND state = 'queued'
