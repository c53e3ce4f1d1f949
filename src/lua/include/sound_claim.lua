-- Looks at the keys that a claim writes before anything is written: one of another type, or with counters that nobody here writes, fails
-- the whole call, not half of it. What a claim reads first (defs, fifo) fails there. Also finds out what need not be looked at further.
local LATER_SETS = { scheduled, retrying, aside, deadlines }
-- Whether the lane has any of LATER_SETS, and anything in ready.
local has_later, has_ready = false, false

-- Returns what the lane itself says: whether it is paused, how many places of fifo are without a job, and until when somebody waits
-- for ends.
local function check_claim_keys()
  redis.call('HLEN', run)
  redis.call('ZCARD', leases)
  has_ready = redis.call('ZCARD', ready) > 0
  has_later = redis.call('EXISTS', unpack(LATER_SETS)) > 0
  if has_later then
    for _, set in ipairs(LATER_SETS) do redis.call('ZCARD', set) end
  end
  local state = redis.call('HMGET', meta, 'paused', 'removed', 'orphans', 'limits', 'waited')
  for at = 2, 3 do
    if state[at] and (#state[at] > 15 or not string.find(state[at], '^%-?%d+$')) then
      error({ err = 'HOLDFAST_DAMAGED a counter of the lane is no number' })
    end
  end
  return state[1], tonumber(state[2] or 0), state[4], tonumber(state[5] or 0) or 0
end
