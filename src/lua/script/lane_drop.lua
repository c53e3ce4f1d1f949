--! keys: meta defs
--! args:
--! flags: allow-oom
--! returns: 1 when nothing of the lane is left
-- Removes what a lane without jobs and without a policy still has.
if redis.call('EXISTS', defs) == 1 or redis.call('HEXISTS', meta, 'paused') == 1 then return 0 end
redis.call('DEL', meta)
return 1
