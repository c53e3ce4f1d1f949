--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress logs completed cancelled dlq keep keep_outputs concurrency parked
--! args: limit
--! flags: allow-oom
--! returns: pruned, outputs dropped, promoted, whether more is due of retention, whether deadlines have passed
-- Removes jobs and outputs whose time is over, and makes due jobs ready.
--@include now
--@include batch
--@include due
--@include finish
--@include sound
check_keys()
local promoted = promote_due(scheduled, 500) + promote_due(retrying, 500)
local gone = redis.call('ZRANGEBYSCORE', keep, '-inf', now, 'LIMIT', 0, limit)
if #gone > 0 then remove_ended(gone) end
local left = limit - #gone
local stale = left > 0 and redis.call('ZRANGEBYSCORE', keep_outputs, '-inf', now, 'LIMIT', 0, left) or {}
write('HDEL', outputs, stale)
write('ZREM', keep_outputs, stale)
local deadline = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
return { #gone, #stale, promoted, left <= #stale and 1 or 0, (deadline and tonumber(deadline) <= now) and 1 or 0 }
