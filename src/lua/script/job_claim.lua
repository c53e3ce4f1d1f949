--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines terms concurrency parked
--! args: limit worker nonce lease_ms ordinal
--! flags: allow-oom
--! returns: as job_turn, without verdicts
-- Claims up to `limit` jobs: a turn that settles nothing, as every idle worker makes it, and with a third of the work.
--@include now
--@include batch
--@include record
local completed_leases = {}
--@include turn
return claim_and_answer('', check_claim_keys())
