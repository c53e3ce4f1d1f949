UPDATE holdfast_job SET progress = :progress WHERE ns = :ns AND id = :id AND state = 'running' AND token = :token
