--! rows: lane text
DELETE FROM holdfast.lane AS policy USING unnest($2::text[]) WITH ORDINALITY AS input (lane, i)
WHERE policy.ns = $1 AND policy.lane = input.lane
RETURNING input.i, 0 AS now
