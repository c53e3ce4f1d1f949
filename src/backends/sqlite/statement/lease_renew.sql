UPDATE holdfast_job SET lease_expires_at = :lease_expires_at
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token
RETURNING cancel_requested
