-- Leaves a wake-up for one idle worker; `limit` of them at most, since one worker wakes the next while there is work.
local function wake_one(limit)
  local waiting = redis.call('LLEN', wake)
  if waiting >= limit then return waiting end
  return redis.call('RPUSH', wake, '1')
end
