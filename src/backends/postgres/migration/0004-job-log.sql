-- What the handlers of live jobs log, apart from the hot table. When a job ends its lines move into its record, so that they go with it.
-- `line` is JSON, as text: the server's own JSON cannot look into one with a NUL character.
CREATE TABLE holdfast.job_log (
  job_seq bigint NOT NULL,
  lease_epoch bigint NOT NULL,
  number integer NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (job_seq, lease_epoch, number)
);
ALTER TABLE holdfast.job_log SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

ALTER TABLE holdfast.archive ADD COLUMN log json;
