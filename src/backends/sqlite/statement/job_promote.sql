UPDATE holdfast_job SET state = 'queued', run_at = :now, updated_at = :now
WHERE ns = :ns AND id = :id AND state IN ('scheduled', 'retry_wait')
