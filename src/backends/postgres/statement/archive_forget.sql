--! rows: id text, token text
UPDATE holdfast.archive AS archive SET token = NULL
FROM unnest($2::text[], $3::text[]) AS input (id, token)
WHERE archive.token = input.token
--@include record_by_id
