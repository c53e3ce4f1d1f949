--@include held_back
-- Limits of a lane. `limits` in meta: `<max in flight> <rate limit> <per ms> <burst> <max per key>`, nothing for what is not limited.
-- Fails before anything is written when nobody here has written it.
local function read_limits(text)
  local in_flight, limit_, per, burst, per_key = string.match(text, '^(%d*) (%d*) (%d*) (%d*) (%d*)$')
  if not in_flight or #text > 64 then error({ err = 'HOLDFAST_DAMAGED the limits of the lane' }) end
  local state = redis.call('HMGET', meta, 'starts', 'parked_after')
  local limits = { in_flight = tonumber(in_flight), per_key = tonumber(per_key), after = state[2] or '' }
  if limit_ ~= '' then
    limits.rate = { limit = tonumber(limit_), per = tonumber(per), burst = tonumber(burst) }
    limits.debt = owed(limits.rate.limit, state[1])
  end
  redis.call('HLEN', concurrency)
  redis.call('ZCARD', parked)
  return limits
end
