--! keys: lanes ...8
--! args:
--! flags: no-writes
--! returns: for each lane whether it could give something: now, in how many milliseconds or nothing, and when its first lease runs out or nothing; at the end a mark
-- Looks at many lanes of one server in one call, eight keys a lane: meta, fifo, ready, scheduled, retrying, leases, deadlines,
-- parked.
-- The mark is another one when a lane was added to the registry since. A paused lane gives nothing; a deadline that has passed is something to give, as whoever comes for it ends the job.
--@include now
local function first(key)
  return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end
local found = {}
for at = 2, #KEYS, 8 do
  local is_paused = redis.call('HEXISTS', KEYS[at], 'paused') == 1
  local due, retry, lease, deadline = first(KEYS[at + 3]), first(KEYS[at + 4]), first(KEYS[at + 5]), first(KEYS[at + 6])
  local next_due = not is_paused and (due and retry and math.min(due, retry) or due or retry)
  local has_due = next_due and next_due <= now or deadline and deadline <= now
  local is_ready = not is_paused and (redis.call('EXISTS', KEYS[at + 1], KEYS[at + 2], KEYS[at + 7]) > 0 or has_due)
  found[#found + 1] = is_ready and 1 or 0
  found[#found + 1] = next_due and string.format('%.0f', next_due - now) or ''
  found[#found + 1] = lease and string.format('%.0f', lease - now) or ''
end
local latest = redis.call('ZREVRANGEBYSCORE', lanes, '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
found[#found + 1] = redis.call('ZCARD', lanes) .. ' ' .. (latest or '')
return found
