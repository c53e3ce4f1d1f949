UPDATE holdfast_job SET lease_expires_at = :now + :lease_ms
WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token
RETURNING id, token, cancel_requested
