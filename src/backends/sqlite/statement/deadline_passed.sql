SELECT id, state, token FROM holdfast_job INDEXED BY holdfast_job_deadline
WHERE ns = :ns AND lane = :lane AND deadline_at <= :now AND state <> 'running'
ORDER BY deadline_at LIMIT :limit
