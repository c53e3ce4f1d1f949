-- What handlers log, apart from the hot table. Lines of a job go with its record; `recorded` of a job says that it has some.
CREATE TABLE holdfast_job_log (
  job_seq INTEGER NOT NULL,
  lease_epoch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (job_seq, lease_epoch, number)
) STRICT, WITHOUT ROWID;
