--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress logs completed cancelled dlq keep keep_outputs concurrency parked
--! args: completed_count cancelled_count dlq_count limit
--! flags: allow-oom
--! returns: how many were removed
-- Removes ended jobs that are too many of their state, those that came first; an empty count stands for any number.
--@include now
--@include batch
--@include finish
--@include sound
check_keys()
local removed = 0
local function trim(key, most)
  local surplus = most == '' and 0 or math.min(redis.call('ZCARD', key) - most, limit - removed)
  if surplus <= 0 then return end
  remove_ended(redis.call('ZRANGE', key, 0, surplus - 1))
  removed = removed + surplus
end
trim(completed, completed_count)
trim(cancelled, cancelled_count)
trim(dlq, dlq_count)
return removed
