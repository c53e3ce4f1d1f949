--@include batch
-- Moves up to `limit` due jobs of one set to ready; returns how many left it. A member that names no job is dropped.
local function promote_due(set, limit)
  local due = redis.call('ZRANGEBYSCORE', set, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  local moved, added = {}, {}
  for index = 1, #due, 2 do
    local sequence, priority, id = string.match(due[index], '^(..............)(%-?%d+):(.*)$')
    moved[#moved + 1] = due[index]
    if sequence and #priority <= 16 then
      added[#added + 1] = -priority
      added[#added + 1] = string.format('%013.0f', due[index + 1]) .. sequence .. id
    end
  end
  write('ZREM', set, moved)
  write('ZADD', ready, added)
  local dropped = #moved - #added / 2
  if dropped > 0 then redis.call('HINCRBY', meta, 'orphans', dropped) end
  return #moved
end
