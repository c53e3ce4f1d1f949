--! keys: lanes
--! args: lane
--! flags: allow-oom
--! returns: now
-- Notes in the registry of the namespace that a lane is in use.
--@include now
redis.call('ZADD', lanes, string.format('%.0f', now), lane)
return string.format('%.0f', now)
