--! args: name text
INSERT INTO holdfast.namespace (name) SELECT $2::text WHERE $1::integer IS NOT NULL
ON CONFLICT DO NOTHING
