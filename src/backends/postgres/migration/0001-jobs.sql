-- Live jobs in a small hot table, ended jobs in an archive that the claim never reads, attempts of live jobs that did not
-- succeed apart from both; those of an ended job go with it. All times in epoch milliseconds.
-- `mark` is found in no other store: whoever gives a transaction of another database is told so.
CREATE TABLE holdfast.namespace (
  ns integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  mark uuid NOT NULL UNIQUE DEFAULT gen_random_uuid()
);

CREATE TABLE holdfast.lane (
  ns integer NOT NULL,
  lane text COLLATE "C" NOT NULL,
  paused boolean NOT NULL,
  PRIMARY KEY (ns, lane)
);

-- Wide columns first, so that no space is lost between them. `payload` is JSON where the value is, `payload_bytes` else.
CREATE TABLE holdfast.job (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  run_at bigint NOT NULL,
  lease_epoch bigint NOT NULL DEFAULT 0,
  deadline_at bigint,
  timeout_ms bigint,
  keep_result_ms bigint,
  lease_expires_at bigint,
  started_at bigint,
  ns integer NOT NULL,
  priority integer NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  crashes integer NOT NULL DEFAULT 0,
  max_crashes integer NOT NULL,
  max_attempts_fixed boolean NOT NULL,
  cancel_requested boolean NOT NULL DEFAULT false,
  recorded boolean NOT NULL DEFAULT false,
  id text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'scheduled', 'queued', 'running', 'retry_wait')),
  type text COLLATE "C" NOT NULL,
  token text COLLATE "C",
  worker_id text COLLATE "C",
  idempotency_key text COLLATE "C",
  trace_id text COLLATE "C",
  replay_of text COLLATE "C",
  retry json,
  metadata json,
  last_failure json,
  payload json,
  payload_bytes bytea,
  progress json,
  progress_bytes bytea
);

CREATE UNIQUE INDEX job_id ON holdfast.job (ns, id);
CREATE INDEX job_ready ON holdfast.job (ns, lane, priority DESC, run_at, seq) WHERE state = 'queued';
CREATE INDEX job_due ON holdfast.job (ns, lane, run_at) WHERE state IN ('scheduled', 'retry_wait');
CREATE INDEX job_deadline ON holdfast.job (ns, lane, deadline_at) WHERE deadline_at IS NOT NULL AND state <> 'running';
CREATE INDEX job_lease ON holdfast.job (ns, lease_expires_at) WHERE state = 'running';

-- Every job is written three times and goes: dead rows are the rule here, so they are swept early and without pauses.
ALTER TABLE holdfast.job SET (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000
);

-- An idempotency key has one job, live or ended, for as long as there is a record of it.
CREATE TABLE holdfast.key (
  ns integer NOT NULL,
  lane text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  PRIMARY KEY (ns, lane, key)
);

-- A grant has an epoch of its own, so it keys the attempt that came of it.
CREATE TABLE holdfast.attempt (
  job_seq bigint NOT NULL,
  lease_epoch bigint NOT NULL,
  started_at bigint NOT NULL,
  finished_at bigint NOT NULL,
  duration_ms double precision,
  attempt integer NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  worker_id text COLLATE "C" NOT NULL,
  failure json,
  PRIMARY KEY (job_seq, lease_epoch)
);
ALTER TABLE holdfast.attempt SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- Partitioned by the day (since 1970, UTC) on which the record may go, so that retention drops whole partitions. Day 0 and
-- days without a partition are in `archive_rest`, where rows go one by one.
CREATE TABLE holdfast.archive (
  seq bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  run_at bigint NOT NULL,
  lease_epoch bigint NOT NULL,
  finished_at bigint NOT NULL,
  deadline_at bigint,
  timeout_ms bigint,
  keep_result_ms bigint,
  started_at bigint,
  keep_until bigint,
  output_until bigint,
  duration_ms double precision,
  expiry_day integer NOT NULL,
  ns integer NOT NULL,
  priority integer NOT NULL,
  attempts integer NOT NULL,
  max_attempts integer NOT NULL,
  crashes integer NOT NULL,
  max_crashes integer NOT NULL,
  max_attempts_fixed boolean NOT NULL,
  cancel_requested boolean NOT NULL,
  id text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL CHECK (state IN ('completed', 'cancelled', 'dlq')),
  type text COLLATE "C" NOT NULL,
  token text COLLATE "C",
  worker_id text COLLATE "C",
  idempotency_key text COLLATE "C",
  trace_id text COLLATE "C",
  replay_of text COLLATE "C",
  dlq_code text COLLATE "C",
  retry json,
  metadata json,
  last_failure json,
  history json,
  payload json,
  payload_bytes bytea,
  progress json,
  progress_bytes bytea,
  output json,
  output_bytes bytea
) PARTITION BY RANGE (expiry_day);

CREATE INDEX archive_id ON holdfast.archive (ns, id);
CREATE INDEX archive_lane ON holdfast.archive (ns, lane, seq);
CREATE INDEX archive_unsuccessful ON holdfast.archive (ns, state, seq) WHERE state <> 'completed';
CREATE INDEX archive_output ON holdfast.archive (ns, output_until) WHERE output_until IS NOT NULL;

CREATE TABLE holdfast.archive_rest PARTITION OF holdfast.archive DEFAULT;
CREATE INDEX archive_rest_keep ON holdfast.archive_rest (ns, keep_until) WHERE keep_until IS NOT NULL;

-- How many records the archive has: their sum by lane and state. Rows are only added by turns and folded by upkeep, so that no
-- two workers ever wait for one another here.
CREATE TABLE holdfast.counter (
  ns integer NOT NULL,
  lane text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  jobs bigint NOT NULL
);
CREATE INDEX counter_lane ON holdfast.counter (ns, lane, state) INCLUDE (jobs);

-- For people: every job, live or ended, with its values where they are JSON.
CREATE VIEW holdfast.jobs AS
SELECT namespace.name AS namespace, job.id, job.lane, job.type, job.state, job.priority, job.attempts, job.max_attempts,
  to_timestamp(job.created_at / 1000.0) AS created_at, to_timestamp(job.run_at / 1000.0) AS run_at,
  to_timestamp(job.started_at / 1000.0) AS started_at, NULL::timestamptz AS finished_at,
  to_timestamp(job.lease_expires_at / 1000.0) AS lease_expires_at, to_timestamp(job.deadline_at / 1000.0) AS deadline_at,
  job.worker_id, job.idempotency_key, job.trace_id, job.replay_of, job.cancel_requested, NULL::text AS dlq_code,
  job.metadata, job.last_failure, job.payload, job.progress, NULL::json AS output
FROM holdfast.job JOIN holdfast.namespace ON namespace.ns = job.ns
UNION ALL
SELECT namespace.name, archive.id, archive.lane, archive.type, archive.state, archive.priority, archive.attempts,
  archive.max_attempts, to_timestamp(archive.created_at / 1000.0), to_timestamp(archive.run_at / 1000.0),
  to_timestamp(archive.started_at / 1000.0), to_timestamp(archive.finished_at / 1000.0), NULL,
  to_timestamp(archive.deadline_at / 1000.0), archive.worker_id, archive.idempotency_key, archive.trace_id,
  archive.replay_of, archive.cancel_requested, archive.dlq_code, archive.metadata, archive.last_failure, archive.payload,
  archive.progress, archive.output
FROM holdfast.archive JOIN holdfast.namespace ON namespace.ns = archive.ns;
