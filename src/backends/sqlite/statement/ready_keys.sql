SELECT seq, id, concurrency_key AS key, priority, run_at FROM holdfast_job INDEXED BY holdfast_job_ready
WHERE ns = :ns AND lane = :lane AND state = 'queued' AND parked = 0
ORDER BY priority DESC, run_at, seq LIMIT :limit OFFSET :offset
