--! keys: ...
--! args:
--! flags: no-writes
--! returns: for each lane whether it could give something: now, in how many milliseconds or nothing, and when its first lease runs out or nothing
-- Looks at many lanes of one server in one call, six keys a lane: fifo, ready, scheduled, retrying, leases, deadlines.
-- A deadline that has passed counts as something to give: whoever comes for it ends the job.
--@include now
local function first(key)
  return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end
local found = {}
for at = 1, #KEYS, 6 do
  local due, retry, lease = first(KEYS[at + 2]), first(KEYS[at + 3]), first(KEYS[at + 4])
  local deadline = first(KEYS[at + 5])
  local next_due = due and retry and math.min(due, retry) or due or retry
  local is_ready = redis.call('EXISTS', KEYS[at], KEYS[at + 1]) > 0 or (next_due and next_due <= now) or (deadline and deadline <= now)
  found[#found + 1] = is_ready and 1 or 0
  found[#found + 1] = next_due and string.format('%.0f', next_due - now) or ''
  found[#found + 1] = lease and string.format('%.0f', lease - now) or ''
end
return found
