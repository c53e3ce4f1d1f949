-- Looks at every key before anything is written: one of a type or with counters that nobody here writes fails the whole call, not half
-- of it. Keys that are not there, as most of them usually are, cost one command together.
local LATER_SETS = { scheduled, retrying, aside, deadlines }
local ENDED_HASHES = { idempotency, keyed, failures, terms, history, outputs, progress }
local ENDED_SETS = { completed, cancelled, dlq, keep, keep_outputs }

local function check_each(command, keys)
  if redis.call('EXISTS', unpack(keys)) == 0 then return end
  for _, key in ipairs(keys) do redis.call(command, key) end
end

-- Returns what the lane itself says: whether it is paused, and how many places of fifo are without a job.
local function check_keys()
  redis.call('HLEN', defs)
  redis.call('HLEN', run)
  redis.call('LLEN', fifo)
  redis.call('ZCARD', ready)
  redis.call('ZCARD', leases)
  check_each('ZCARD', LATER_SETS)
  check_each('HLEN', ENDED_HASHES)
  check_each('ZCARD', ENDED_SETS)
  local state = redis.call('HMGET', meta, 'paused', 'removed', 'orphans')
  for at = 2, 3 do
    if state[at] and (#state[at] > 15 or not string.find(state[at], '^%-?%d+$')) then
      error({ err = 'HOLDFAST_DAMAGED a counter of the lane is no number' })
    end
  end
  return state[1], tonumber(state[2] or 0)
end
