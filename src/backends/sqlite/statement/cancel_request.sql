UPDATE holdfast_job SET cancel_requested = 1 WHERE ns = :ns AND id = :id AND state = 'running'
