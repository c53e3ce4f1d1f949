--@include gate
--@include held_back
-- How many more jobs a gated lane accepts. Fails before anything is written when nobody here has written it.
local function read_gate()
  local state = redis.call('HMGET', meta, 'gate', 'arrivals')
  local limit_, per = string.match(state[1] or '', '^(%d+) (%d+)$')
  if not limit_ or #limit_ > 15 or #per > 15 then error({ err = 'HOLDFAST_DAMAGED the gate of the lane' }) end
  local rate = { limit = tonumber(limit_), per = tonumber(per), burst = tonumber(limit_) }
  local debt = owed(rate.limit, state[2])
  return { rate = rate, debt = debt, tokens = tokens_of(rate, debt), admitted = 0, refused = 0 }
end

-- The same behind a sequence that was raised by `count`, which is taken back with the refusal.
local function open_gate(count)
  local is_sound, gate = pcall(read_gate)
  if is_sound then return gate end
  redis.call('HINCRBY', meta, 'sequence', -count)
  error(gate)
end

-- Whether one more is accepted; true where nothing is counted.
local function is_admitted(gate)
  if not gate then return true end
  if gate.admitted >= gate.tokens then
    gate.refused = gate.refused + 1
    return false
  end
  gate.admitted = gate.admitted + 1
  return true
end

-- Writes the count down; gives how long those that were refused have to wait.
local function close_gate(gate)
  local debt = gate.debt + gate.admitted * gate.rate.per
  if gate.admitted > 0 then redis.call('HSET', meta, 'arrivals', bucket_text(debt)) end
  if gate.refused == 0 then return '' end
  count_held('E', gate.refused)
  return string.format('%.0f', math.max(1, wait_of(gate.rate, debt)))
end
