--! rows: name text
INSERT INTO holdfast.namespace (name)
SELECT input.name FROM unnest($2::text[]) WITH ORDINALITY AS input (name, i) WHERE $1::integer IS NOT NULL
ON CONFLICT DO NOTHING
RETURNING 1 AS i, 0 AS now
