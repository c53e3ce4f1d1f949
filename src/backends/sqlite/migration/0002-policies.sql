--! breaking
-- Limits of lanes. An earlier release would claim without looking at them, and asks for an index that has another condition now.
ALTER TABLE holdfast_lane ADD COLUMN max_in_flight INTEGER;
ALTER TABLE holdfast_lane ADD COLUMN rate_limit INTEGER;
ALTER TABLE holdfast_lane ADD COLUMN rate_per_ms INTEGER;
ALTER TABLE holdfast_lane ADD COLUMN rate_burst INTEGER;
ALTER TABLE holdfast_lane ADD COLUMN rate_debt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_lane ADD COLUMN rate_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_lane ADD COLUMN max_per_key INTEGER;
-- Claims must look at the limits, or jobs are still set aside.
ALTER TABLE holdfast_lane ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_lane ADD COLUMN parked_after TEXT NOT NULL DEFAULT '';

-- How many jobs a lane accepts. Apart from the lane, so that those who enqueue and those who claim never wait for one another.
CREATE TABLE holdfast_gate (
  ns INTEGER NOT NULL,
  lane TEXT NOT NULL,
  rate_limit INTEGER NOT NULL,
  rate_per_ms INTEGER NOT NULL,
  rate_debt INTEGER NOT NULL,
  rate_at INTEGER NOT NULL,
  PRIMARY KEY (ns, lane)
) STRICT, WITHOUT ROWID;

-- How often a limit held something back.
CREATE TABLE holdfast_throttle (
  ns INTEGER NOT NULL,
  lane TEXT NOT NULL,
  reason TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (ns, lane, reason)
) STRICT, WITHOUT ROWID;

-- Parked: queued, but set aside by a claim that found its key at the limit, so that no claim meets it again until the key is free.
ALTER TABLE holdfast_job ADD COLUMN concurrency_key TEXT;
ALTER TABLE holdfast_job ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_archive ADD COLUMN concurrency_key TEXT;
DROP INDEX holdfast_job_ready;
CREATE INDEX holdfast_job_ready ON holdfast_job (ns, lane, priority DESC, run_at) WHERE state = 'queued' AND parked = 0;
CREATE INDEX holdfast_job_parked ON holdfast_job (ns, lane, concurrency_key, priority DESC, run_at)
  WHERE state = 'queued' AND parked = 1;
