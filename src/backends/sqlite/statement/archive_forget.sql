UPDATE holdfast_archive SET token = NULL WHERE ns = :ns AND id = :id AND token = :token
