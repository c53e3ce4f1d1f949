--! keys: meta fifo ready scheduled retrying leases completed cancelled dlq parked
--! args:
--! flags: no-writes
--! returns: paused, orphans, queued, scheduled, retry_wait, running, completed, cancelled, dlq, time of the oldest that is ready or nothing, now
-- Counts a lane by the sizes of its sets: nothing is counted twice, so nothing can drift.
--@include now
local state = redis.call('HMGET', meta, 'paused', 'removed', 'orphans')
local queued = redis.call('LLEN', fifo) + redis.call('ZCARD', ready) + redis.call('ZCARD', parked) - (tonumber(state[2] or 0) or 0)
local oldest = nil
for _, entry in ipairs(redis.call('LRANGE', fifo, 0, 999)) do
  if #entry > 27 then
    oldest = string.sub(entry, 1, 13)
    break
  end
end
-- Only the first of each priority could be older; all of a small set are looked at, of a large one the front.
for _, entry in ipairs(redis.call('ZRANGE', ready, 0, 999)) do
  local at = string.sub(entry, 1, 13)
  if not oldest or at < oldest then oldest = at end
end
for _, member in ipairs(redis.call('ZRANGE', parked, 0, 999)) do
  local at = string.sub(member, 51, 63)
  if not oldest or at < oldest then oldest = at end
end
local counts = { state[1] and 1 or 0, tonumber(state[3] or 0) or 0, queued }
for _, set in ipairs({ scheduled, retrying, leases, completed, cancelled, dlq }) do
  counts[#counts + 1] = redis.call('ZCARD', set)
end
counts[#counts + 1] = oldest or ''
counts[#counts + 1] = string.format('%.0f', now)
return counts
