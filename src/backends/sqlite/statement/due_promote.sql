UPDATE holdfast_job SET state = 'queued', updated_at = :now
WHERE seq IN (
  SELECT seq FROM holdfast_job INDEXED BY holdfast_job_due
  WHERE ns = :ns AND lane = :lane AND state IN ('scheduled', 'retry_wait') AND run_at <= :now
  ORDER BY run_at LIMIT :limit
)
