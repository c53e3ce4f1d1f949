DELETE FROM holdfast_worker WHERE ns = :ns AND id = :id
