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
