SELECT id, state FROM holdfast_archive WHERE ns = :ns AND id = :id
