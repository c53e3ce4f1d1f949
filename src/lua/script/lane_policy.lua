--! keys: meta parked
--! args: paused in_flight rate per_key gate
--! flags: allow-oom
--! returns: 1
-- Changes the policy of a lane, also when memory is full, since that is when an operator may want it.
-- `-` leaves a part as it is, nothing takes it away. paused: 1 or 0; rate: `<limit> <per ms> <burst>`; gate: `<limit> <per ms>` of enqueues.
--@include gate
local before = redis.call('HMGET', meta, 'limits', 'gate', 'sequence')
local is_sound = not before[3] or (#before[3] <= 16 and string.find(before[3], '^%-?%d+$'))
local old_in_flight, old_rate, old_per_key = string.match(before[1] or '    ', '^(%d*) (%d* %d* %d*) (%d*)$')
if not old_in_flight or not is_sound then return redis.error_reply('HOLDFAST_DAMAGED the limits of the lane') end
local is_parked = redis.call('ZCARD', parked) > 0
if paused == '1' then redis.call('HSET', meta, 'paused', 1) elseif paused == '0' then redis.call('HDEL', meta, 'paused') end
local new_rate = rate == '-' and old_rate or (rate == '' and '  ' or rate)
local new_in_flight = in_flight == '-' and old_in_flight or in_flight
local new_per_key = per_key == '-' and old_per_key or per_key
local text = new_in_flight .. ' ' .. new_rate .. ' ' .. new_per_key
local is_limited = text ~= '    '
if new_rate ~= old_rate then redis.call('HDEL', meta, 'starts') end
if is_limited or (is_parked and before[1]) then
  redis.call('HSET', meta, 'limits', text)
else
  redis.call('HDEL', meta, 'limits', 'starts', 'parked_after')
end
local new_gate = gate ~= '' and gate
if gate == '-' then new_gate = before[2] end
if new_gate ~= before[2] then redis.call('HDEL', meta, 'arrivals') end
if new_gate then redis.call('HSET', meta, 'gate', new_gate) else redis.call('HDEL', meta, 'gate') end
if new_gate and not before[2] then redis.call('HINCRBY', meta, 'sequence', GATED) end
if before[2] and not new_gate then redis.call('HINCRBY', meta, 'sequence', -GATED) end
if not (is_limited or new_gate or (is_parked and before[1])) then
  redis.call('HDEL', meta, 'held_I', 'held_R', 'held_K', 'held_E')
end
return 1
