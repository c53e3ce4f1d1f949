-- In flight is what the leases say: nothing is counted anywhere else. Of running jobs there are never many.
--! rows: lane text
SELECT concurrency_key AS key, count(*) AS jobs FROM holdfast.job
WHERE ns = $1 AND state = 'running' AND lane = ANY ($2::text[]) GROUP BY concurrency_key
