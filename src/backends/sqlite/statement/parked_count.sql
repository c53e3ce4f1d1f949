SELECT count(*) AS jobs FROM holdfast_job INDEXED BY holdfast_job_parked
WHERE ns = :ns AND lane = :lane AND state = 'queued' AND parked = 1
