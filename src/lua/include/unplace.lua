--@include record
--@include removed
--@include parked_member
-- Takes jobs from where they wait.
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

local function unpark(id, head, entry)
  if redis.call('EXISTS', parked) == 0 then return false end
  local key = redis.call('HGET', concurrency, id)
  return key and redis.call('ZREM', parked, parked_member(key, head.priority, entry)) == 1
end

-- Takes a job from wherever it waits. `run` is nil for one that never ran.
local function unplace(id, head, run)
  local later = head.sequence .. head.priority .. ':' .. id
  if redis.call('ZREM', scheduled, later) + redis.call('ZREM', retrying, later) == 0 then
    local at = run and run.run_at or (head.run_at ~= '' and head.run_at) or head.created
    local entry = string.format('%013.0f', at) .. head.sequence .. id
    local is_found = redis.call('ZREM', ready, entry) == 1 or unpark(id, head, entry)
    if not is_found then remove_from_fifo(entry) end
  end
  redis.call('ZREM', aside, id)
  redis.call('ZREM', deadlines, id)
end
