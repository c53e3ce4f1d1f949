--! breaking
-- Limits of lanes. An earlier release would claim without looking at them.
ALTER TABLE holdfast.lane
  ADD COLUMN max_in_flight bigint,
  ADD COLUMN rate_limit bigint,
  ADD COLUMN rate_per_ms bigint,
  ADD COLUMN rate_burst bigint,
  ADD COLUMN rate_debt bigint NOT NULL DEFAULT 0,
  ADD COLUMN rate_at bigint NOT NULL DEFAULT 0,
  ADD COLUMN max_per_key bigint,
  -- Claims must look at the limits, or jobs are still set aside.
  ADD COLUMN limited boolean NOT NULL DEFAULT false,
  ADD COLUMN parked_after text COLLATE "C" NOT NULL DEFAULT '';

-- How many jobs a lane accepts. Apart from the lane, so that those who enqueue and those who claim never wait for one another.
CREATE TABLE holdfast.gate (
  ns integer NOT NULL,
  lane text COLLATE "C" NOT NULL,
  rate_limit bigint NOT NULL,
  rate_per_ms bigint NOT NULL,
  rate_debt bigint NOT NULL,
  rate_at bigint NOT NULL,
  PRIMARY KEY (ns, lane)
);

-- How often a limit held something back.
CREATE TABLE holdfast.throttle (
  ns integer NOT NULL,
  lane text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  PRIMARY KEY (ns, lane, reason)
);

-- Parked: queued, but set aside by a claim that found its key at the limit, so that no claim meets it again until the key is free.
ALTER TABLE holdfast.job
  ADD COLUMN concurrency_key text COLLATE "C",
  ADD COLUMN parked boolean NOT NULL DEFAULT false;
ALTER TABLE holdfast.archive ADD COLUMN concurrency_key text COLLATE "C";
DROP INDEX holdfast.job_ready;
CREATE INDEX job_ready ON holdfast.job (ns, lane, priority DESC, run_at, seq) WHERE state = 'queued' AND NOT parked;
CREATE INDEX job_parked ON holdfast.job (ns, lane, concurrency_key, priority DESC, run_at, seq)
  WHERE state = 'queued' AND parked;
