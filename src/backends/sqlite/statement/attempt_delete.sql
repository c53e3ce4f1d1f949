DELETE FROM holdfast_attempt WHERE job_seq = :seq
