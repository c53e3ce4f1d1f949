INSERT INTO holdfast_namespace (name) VALUES (:name) ON CONFLICT DO NOTHING
