--! keys: meta defs
--! args:
--! flags: allow-oom
--! returns: 1 when nothing of the lane is left
-- Removes what a lane without jobs and without a policy still has.
local policy = redis.call('HMGET', meta, 'paused', 'limits', 'gate')
if redis.call('EXISTS', defs) == 1 or policy[1] or policy[2] or policy[3] then return 0 end
redis.call('DEL', meta)
return 1
