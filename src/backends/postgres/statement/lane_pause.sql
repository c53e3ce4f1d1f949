--! rows: lane text
INSERT INTO holdfast.lane (ns, lane, paused)
SELECT $1, input.lane, true FROM unnest($2::text[]) WITH ORDINALITY AS input (lane, i) ORDER BY input.lane
ON CONFLICT DO NOTHING
RETURNING 1 AS i, 0 AS now
