SELECT ns FROM holdfast_namespace WHERE name = :name
