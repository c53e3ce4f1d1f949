-- Live jobs in a small hot table, ended jobs in an archive that the claim never reads, attempts that did not succeed
-- apart from both. Every key starts with the namespace. All times in epoch milliseconds.
CREATE TABLE holdfast_namespace (
  ns INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE holdfast_lane (
  ns INTEGER NOT NULL,
  lane TEXT NOT NULL,
  paused INTEGER NOT NULL,
  PRIMARY KEY (ns, lane)
) STRICT, WITHOUT ROWID;

-- `seq` is given by job_enqueue.sql: AUTOINCREMENT would write one page more with every enqueue.
CREATE TABLE holdfast_job (
  seq INTEGER PRIMARY KEY,
  ns INTEGER NOT NULL,
  id TEXT NOT NULL,
  lane TEXT NOT NULL,
  state TEXT NOT NULL,
  type TEXT NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  deadline_at INTEGER,
  timeout_ms INTEGER,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  max_attempts_fixed INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  max_crashes INTEGER NOT NULL,
  retry TEXT,
  idempotency_key TEXT,
  metadata TEXT,
  trace_id TEXT,
  replay_of TEXT,
  keep_result_ms INTEGER,
  token TEXT,
  lease_epoch INTEGER NOT NULL,
  lease_expires_at INTEGER,
  worker_id TEXT,
  started_at INTEGER,
  cancel_requested INTEGER NOT NULL,
  last_failure TEXT,
  recorded INTEGER NOT NULL,
  payload ANY NOT NULL,
  progress ANY,
  CHECK (state IN ('waiting', 'scheduled', 'queued', 'running', 'retry_wait'))
) STRICT;

CREATE UNIQUE INDEX holdfast_job_id ON holdfast_job (ns, id);
CREATE UNIQUE INDEX holdfast_job_key ON holdfast_job (ns, lane, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX holdfast_job_ready ON holdfast_job (ns, lane, priority DESC, run_at) WHERE state = 'queued';
CREATE INDEX holdfast_job_due ON holdfast_job (ns, lane, run_at, state) WHERE state IN ('scheduled', 'retry_wait');
CREATE INDEX holdfast_job_deadline ON holdfast_job (ns, lane, deadline_at)
  WHERE deadline_at IS NOT NULL AND state <> 'running';
CREATE INDEX holdfast_job_lease ON holdfast_job (ns, lease_expires_at) WHERE state = 'running';

CREATE TABLE holdfast_archive (
  seq INTEGER PRIMARY KEY,
  ns INTEGER NOT NULL,
  id TEXT NOT NULL,
  lane TEXT NOT NULL,
  state TEXT NOT NULL,
  type TEXT NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  deadline_at INTEGER,
  timeout_ms INTEGER,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  max_attempts_fixed INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  max_crashes INTEGER NOT NULL,
  retry TEXT,
  idempotency_key TEXT,
  metadata TEXT,
  trace_id TEXT,
  replay_of TEXT,
  keep_result_ms INTEGER,
  token TEXT,
  lease_epoch INTEGER NOT NULL,
  worker_id TEXT,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  duration_ms REAL,
  cancel_requested INTEGER NOT NULL,
  last_failure TEXT,
  dlq_code TEXT,
  recorded INTEGER NOT NULL,
  keep_until INTEGER,
  output_until INTEGER,
  payload ANY NOT NULL,
  progress ANY,
  output ANY,
  CHECK (state IN ('completed', 'cancelled', 'dlq'))
) STRICT;

CREATE UNIQUE INDEX holdfast_archive_id ON holdfast_archive (ns, id);
CREATE UNIQUE INDEX holdfast_archive_key ON holdfast_archive (ns, lane, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX holdfast_archive_lane ON holdfast_archive (ns, lane, state);
CREATE INDEX holdfast_archive_unsuccessful ON holdfast_archive (ns, state) WHERE state <> 'completed';
CREATE INDEX holdfast_archive_keep ON holdfast_archive (ns, keep_until) WHERE keep_until IS NOT NULL;
CREATE INDEX holdfast_archive_output ON holdfast_archive (ns, output_until) WHERE output_until IS NOT NULL;

-- A grant has an epoch of its own, so it keys the attempt that came of it.
CREATE TABLE holdfast_attempt (
  job_seq INTEGER NOT NULL,
  lease_epoch INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  worker_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  duration_ms REAL,
  failure TEXT,
  PRIMARY KEY (job_seq, lease_epoch)
) STRICT, WITHOUT ROWID;
