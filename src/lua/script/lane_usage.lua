--! keys: meta leases concurrency parked
--! args: keys_max
--! flags: no-writes
--! returns: leases, parked jobs, starts that the rate permits or nothing, enqueues or nothing, keys at their limit, `held_I`, `held_R`, `held_K`, `held_E` or nothing
-- How much of the limits of a lane is used.
--@include now
--@include batch
--@include bucket
local state = redis.call('HMGET', meta, 'limits', 'starts', 'gate', 'arrivals', 'held_I', 'held_R', 'held_K', 'held_E')
local limit_, per, burst, per_key = string.match(state[1] or '', '^%d* (%d*) (%d*) (%d*) (%d*)$')
local gate_limit, gate_per = string.match(state[3] or '', '^(%d+) (%d+)$')
local function tokens(rate, text)
  if not rate.limit or rate.limit == '' then return '' end
  local numbers = { limit = tonumber(rate.limit), per = tonumber(rate.per), burst = tonumber(rate.burst) }
  return string.format('%.0f', tokens_of(numbers, owed(numbers.limit, text)))
end
local held, full = {}, {}
if per_key and per_key ~= '' then
  local ids = redis.call('ZRANGE', leases, 0, redis.call('ZCARD', leases))
  for _, key in ipairs(read('HMGET', concurrency, ids)) do
    if key then held[key] = (held[key] or 0) + 1 end
  end
end
for key, count in pairs(held) do
  if count >= tonumber(per_key) then full[#full + 1] = key end
end
table.sort(full)
while #full > tonumber(keys_max) do table.remove(full) end
return {
  redis.call('ZCARD', leases), redis.call('ZCARD', parked), tokens({ limit = limit_, per = per, burst = burst }, state[2]),
  tokens({ limit = gate_limit, per = gate_per, burst = gate_limit }, state[4]), full,
  state[5], state[6], state[7], state[8],
}
