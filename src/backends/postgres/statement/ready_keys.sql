--! args: lane text, limit bigint, offset bigint
SELECT seq, id, concurrency_key AS key, priority, run_at FROM holdfast.job
WHERE ns = $1 AND lane = $2::text AND state = 'queued' AND NOT parked
ORDER BY priority DESC, run_at, seq LIMIT $3::bigint OFFSET $4::bigint
