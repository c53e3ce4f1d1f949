SELECT seq, id, concurrency_key AS key, priority, run_at FROM holdfast_job INDEXED BY holdfast_job_parked
WHERE ns = :ns AND lane = :lane AND concurrency_key = :key AND state = 'queued' AND parked = 1
ORDER BY priority DESC, run_at, seq LIMIT :limit
