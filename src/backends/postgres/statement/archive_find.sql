--! rows: id text
SELECT archive.id, archive.state
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i)
JOIN holdfast.archive AS archive ON true
--@include record_by_id
