--! keys: lanes
--! args: lane before
--! flags: allow-oom
--! returns: 1 when the lane was noted at `before` or earlier, and is not any more
-- Takes a lane out of the registry, unless somebody has noted it again meanwhile.
local at = redis.call('ZSCORE', lanes, lane)
if not at or tonumber(at) > tonumber(before) then return 0 end
return redis.call('ZREM', lanes, lane)
