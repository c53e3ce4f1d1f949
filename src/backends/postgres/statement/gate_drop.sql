--! rows: lane text
DELETE FROM holdfast.gate WHERE ns = $1 AND lane = ANY ($2::text[])
