UPDATE holdfast_job SET
  state = 'queued', updated_at = :now, last_failure = :failure, crashes = :crashes, lease_expires_at = NULL, recorded = 1
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
