UPDATE holdfast_job SET
  state = 'queued', attempts = attempts - 1, updated_at = :now, lease_expires_at = NULL,
  recorded = max(recorded, :recorded)
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
