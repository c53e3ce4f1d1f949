SELECT seq, lane, state, token, cancel_requested, lease_expires_at FROM holdfast_job WHERE ns = :ns AND id = :id
UNION ALL
SELECT seq, lane, state, token, cancel_requested, NULL FROM holdfast_archive WHERE ns = :ns AND id = :id
LIMIT 1
