--! keys: meta
--! args: paused
--! flags: allow-oom
--! returns: 1
-- Pauses a lane (1) or lets it go on (0); also when memory is full, since that is when an operator may want it.
if paused == '1' then redis.call('HSET', meta, 'paused', 1) else redis.call('HDEL', meta, 'paused') end
return 1
