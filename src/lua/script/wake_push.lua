--! keys: wake
--! args: limit
--! flags: allow-oom
--! returns: how many tokens wait
-- Leaves a wake-up for one idle worker; `limit` of them at most, since one worker wakes the next while there is work.
local waiting = redis.call('LLEN', wake)
if waiting >= tonumber(limit) then return waiting end
return redis.call('RPUSH', wake, '1')
