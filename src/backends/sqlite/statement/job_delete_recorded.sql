DELETE FROM holdfast_job WHERE ns = :ns AND id = :id AND state = :from AND token IS :token RETURNING seq
