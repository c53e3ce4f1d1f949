-- Hot: bound by position.
--! bind: attempts, lease_epoch, token, worker_id, now, now, now, lease_ms, seq
UPDATE holdfast_job SET
  state = 'running', attempts = ?, lease_epoch = ?, token = ?, worker_id = ?, started_at = ?, updated_at = ?,
  lease_expires_at = ? + ?
WHERE seq = ? AND state = 'queued'
