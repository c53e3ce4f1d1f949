--! keys: keyspace lock
--! args: token version next
--! flags: allow-oom
--! returns: 1 when the version was moved
-- Ends the turn of a migrator: moves the version on if `next` is given, unless its lock ran out or somebody else has moved it; lets go of the lock.
local found = redis.call('GET', keyspace)
if redis.call('GET', lock) ~= token then return 0 end
redis.call('DEL', lock)
if next == '' or found ~= version then return 0 end
redis.call('SET', keyspace, next)
return 1
