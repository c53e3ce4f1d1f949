-- In flight is what the leases say: nothing is counted anywhere else. Of running jobs there are never many.
SELECT concurrency_key AS key, count(*) AS jobs FROM holdfast_job INDEXED BY holdfast_job_lease
WHERE ns = :ns AND state = 'running' AND lane = :lane GROUP BY concurrency_key
