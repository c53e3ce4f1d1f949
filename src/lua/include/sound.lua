-- Looks at every key before anything is written: one of a type or with counters that nobody here writes fails the whole call, not half
-- of it. Keys that are not there, as most of them usually are, cost one command together.
local RARE_HASHES = { idempotency, keyed, ended, failures, terms, history, outputs, progress }
local RARE_SETS = { completed, cancelled, dlq, keep, keep_outputs }

-- Returns what the lane itself says: whether it is paused, and how many places of fifo are without a job.
local function check_keys()
  redis.call('HLEN', defs)
  redis.call('HLEN', run)
  redis.call('LLEN', fifo)
  for _, set in ipairs({ ready, scheduled, retrying, aside, leases, deadlines }) do redis.call('ZCARD', set) end
  if redis.call('EXISTS', unpack(RARE_HASHES)) > 0 then
    for _, hash in ipairs(RARE_HASHES) do redis.call('HLEN', hash) end
  end
  if redis.call('EXISTS', unpack(RARE_SETS)) > 0 then
    for _, set in ipairs(RARE_SETS) do redis.call('ZCARD', set) end
  end
  local state = redis.call('HMGET', meta, 'paused', 'removed', 'orphans')
  for at = 2, 3 do
    if state[at] and (#state[at] > 15 or not string.find(state[at], '^%-?%d+$')) then
      error({ err = 'HOLDFAST_DAMAGED a counter of the lane is no number' })
    end
  end
  return state[1], tonumber(state[2] or 0)
end
