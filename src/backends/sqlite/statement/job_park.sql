UPDATE holdfast_job SET parked = 1 WHERE seq = :seq AND state = 'queued' AND parked = 0
