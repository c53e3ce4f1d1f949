SELECT lane, idempotency_key AS key, id, state FROM holdfast_job
WHERE ns = :ns AND lane = :lane AND idempotency_key = :key
UNION ALL
SELECT lane, idempotency_key, id, state FROM holdfast_archive WHERE ns = :ns AND lane = :lane AND idempotency_key = :key
LIMIT 1
