--! rows: id text
SELECT archive.id, archive.state
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i)
JOIN holdfast.archive AS archive ON archive.ns = $1 AND archive.id = input.id
