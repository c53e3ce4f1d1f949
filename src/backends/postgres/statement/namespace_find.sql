--! args: name text
SELECT ns FROM holdfast.namespace WHERE name = $2 AND $1::integer IS NOT NULL
