--! rows: id text, token text
UPDATE holdfast.archive AS archive SET token = NULL
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS input (id, token, i)
WHERE archive.ns = $1 AND archive.id = input.id AND archive.token = input.token
RETURNING input.i, 0 AS now
