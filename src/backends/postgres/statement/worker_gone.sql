--! rows: id text
DELETE FROM holdfast.worker AS worker WHERE worker.ns = $1 AND worker.id = ANY ($2::text[])
