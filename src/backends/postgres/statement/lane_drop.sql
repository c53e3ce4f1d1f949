--! rows: lane text
DELETE FROM holdfast.lane WHERE ns = $1 AND lane = ANY ($2::text[])
