-- Leaves a wake-up for one idle worker; `limit` of them at most, since one worker wakes the next while there is work.
local function wake(limit)
  local waiting = redis.call('LLEN', wakes)
  if waiting >= limit then return waiting end
  return redis.call('RPUSH', wakes, '1')
end
