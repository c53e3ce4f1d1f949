--! rows: lane text
SELECT reason, count, first_at, last_at FROM holdfast.throttle WHERE ns = $1 AND lane = ANY ($2::text[]) ORDER BY reason
