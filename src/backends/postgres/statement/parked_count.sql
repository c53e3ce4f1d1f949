--! args: lane text
SELECT count(*) AS jobs FROM holdfast.job WHERE ns = $1 AND lane = $2::text AND state = 'queued' AND parked
