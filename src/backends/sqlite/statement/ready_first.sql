SELECT run_at FROM holdfast_job INDEXED BY holdfast_job_ready
WHERE ns = :ns AND lane = :lane AND state = 'queued'
ORDER BY priority DESC, run_at, seq LIMIT 1
