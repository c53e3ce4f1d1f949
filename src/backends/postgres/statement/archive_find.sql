-- One look-up an id, whatever the planner believes: what has a limit is not joined in another way.
--! rows: id text
SELECT found.* FROM unnest($2::text[]) AS input (id) CROSS JOIN LATERAL (
  SELECT archive.id, archive.state FROM holdfast.archive AS archive WHERE archive.ns + 0 = $1 AND archive.id = input.id LIMIT 1
) AS found
