SELECT run_at FROM holdfast_job INDEXED BY holdfast_job_due
WHERE ns = :ns AND lane = :lane AND state IN ('scheduled', 'retry_wait')
ORDER BY run_at LIMIT 1
