--! keys: workers beats
--! args: forget_ms limit
--! flags: no-writes
--! returns: now, then id, time and record of each worker heard of within that time, the latest first
-- Who works on the namespace.
--@include now
local from = string.format('%.0f', now - forget_ms)
local seen = redis.call('ZREVRANGEBYSCORE', beats, '+inf', from, 'WITHSCORES', 'LIMIT', 0, limit)
local found = { string.format('%.0f', now) }
for at = 1, #seen, 2 do
  found[#found + 1] = seen[at]
  found[#found + 1] = seen[at + 1]
  found[#found + 1] = redis.call('HGET', workers, seen[at]) or ''
end
return found
