SELECT id, state, token, cancel_requested FROM holdfast_job WHERE ns = :ns AND id = :id
UNION ALL
SELECT id, state, token, cancel_requested FROM holdfast_archive WHERE ns = :ns AND id = :id
LIMIT 1
