UPDATE holdfast_job SET
  state = 'retry_wait', run_at = :run_at, updated_at = :now, last_failure = :failure, crashes = :crashes,
  retry = :retry, max_attempts = :max_attempts, lease_expires_at = NULL, recorded = 1
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token AND cancel_requested = 0
