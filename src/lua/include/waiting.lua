--@include record
-- Where a job waits. fifo: fresh jobs without priority, entries `<run_at 13><sequence 14><id>` in their own order; a removed one keeps its
-- place without the id. ready: all others that could run, the same entries by priority. scheduled, retrying: by time,
-- `<sequence><priority>:<id>`. aside: those of ready, scheduled and retrying by sequence. deadlines: all that wait and have one.
local function set_aside(id, head)
  redis.call('ZADD', aside, head.sequence, id)
  if head.deadline ~= '' then redis.call('ZADD', deadlines, head.deadline, id) end
end

local function place_ready(id, head, run_at)
  redis.call('ZADD', ready, -head.priority, string.format('%013.0f', run_at) .. head.sequence .. id)
  set_aside(id, head)
end

local function place_later(set, id, head, run_at)
  redis.call('ZADD', set, string.format('%.0f', run_at), head.sequence .. head.priority .. ':' .. id)
  set_aside(id, head)
end

-- Nothing but removed entries is left: then fifo goes, so that one that exists has something to run.
local function drop_removed()
  local removed = tonumber(redis.call('HGET', meta, 'removed') or 0)
  if removed == 0 then return end
  if removed >= redis.call('LLEN', fifo) then
    redis.call('DEL', fifo)
    redis.call('HDEL', meta, 'removed')
  end
end

local function remove_from_fifo(entry)
  local order = string.sub(entry, 1, 27)
  local low, high = 0, redis.call('LLEN', fifo)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if string.sub(redis.call('LINDEX', fifo, middle), 1, 27) < order then low = middle + 1 else high = middle end
  end
  if redis.call('LINDEX', fifo, low) ~= entry then return end
  redis.call('LSET', fifo, low, order)
  redis.call('HINCRBY', meta, 'removed', 1)
  drop_removed()
end

-- Takes a job from wherever it waits. `run` is nil for one that never ran.
local function unplace(id, head, run)
  local later = head.sequence .. head.priority .. ':' .. id
  if redis.call('ZREM', scheduled, later) + redis.call('ZREM', retrying, later) == 0 then
    local at = run and run.run_at or (head.run_at ~= '' and head.run_at) or head.created
    local entry = string.format('%013.0f', at) .. head.sequence .. id
    if redis.call('ZREM', ready, entry) == 0 then remove_from_fifo(entry) end
  end
  redis.call('ZREM', aside, id)
  redis.call('ZREM', deadlines, id)
end

-- Moves up to `limit` due jobs of one set to ready; returns how many.
local function promote_due(set, limit)
  local due = redis.call('ZRANGEBYSCORE', set, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  local moved, added = {}, {}
  for index = 1, #due, 2 do
    local sequence, priority, id = string.match(due[index], '^(..............)(%-?%d+):(.*)$')
    moved[#moved + 1] = due[index]
    added[#added + 1] = -priority
    added[#added + 1] = string.format('%013.0f', due[index + 1]) .. sequence .. id
  end
  write('ZREM', set, moved)
  write('ZADD', ready, added)
  return #moved
end
