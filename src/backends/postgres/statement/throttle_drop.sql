--! rows: lane text
DELETE FROM holdfast.throttle WHERE ns = $1 AND lane = ANY ($2::text[])
