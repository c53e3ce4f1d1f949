--! rows: lane text
INSERT INTO holdfast.lane (ns, lane, paused)
SELECT $1, input.lane, true FROM unnest($2::text[]) AS input (lane) ORDER BY input.lane
ON CONFLICT DO NOTHING
