UPDATE holdfast_job SET parked = 0 WHERE seq = :seq
