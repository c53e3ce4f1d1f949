-- Lets go of what an unlimited lane with nothing parked does not need.
local function tidy_limits()
  redis.call('HDEL', meta, 'limits', 'starts', 'parked_after')
  if redis.call('HEXISTS', meta, 'gate') == 0 then redis.call('HDEL', meta, 'held_I', 'held_R', 'held_K', 'held_E') end
end

-- Why a claim was given less than it wanted: a letter, and for a rate when the next may start.
local function held_back(limits, debt, outcome)
  if outcome.granted >= outcome.wanted or not (outcome.has_ready or outcome.has_parked) then return '' end
  if outcome.granted < math.min(outcome.slots, outcome.tokens) then return outcome.has_ready and '' or 'K' end
  if outcome.slots <= outcome.tokens then return 'I' end
  return 'R' .. string.format('%.0f', wait_of(limits.rate, debt))
end

-- As `grant`; then whether the same claim again might be given something, and what held it back.
local function grant_limited(limits, wanted, removed)
  local running = redis.call('ZCARD', leases) - #completed_leases
  local slots = limits.in_flight and math.max(0, limits.in_flight - running) or math.huge
  local tokens = limits.rate and tokens_of(limits.rate, limits.debt) or math.huge
  local allowed, debt = math.min(wanted, slots, tokens), limits.debt
  local ids, given, before, settled_terms, is_cut = {}, {}, {}, {}, false
  if allowed > 0 then
    local picked = pick(limits, allowed, removed)
    local found = pickable(picked)
    is_cut = picked.is_cut or #found.definitions < #found.ids
    ids, given, before, settled_terms = grant(found, removed)
    if picked.after ~= limits.after then redis.call('HSET', meta, 'parked_after', picked.after) end
  end
  if limits.rate and #ids > 0 then
    debt = debt + #ids * limits.rate.per
    redis.call('HSET', meta, 'starts', bucket_text(debt))
  end
  local outcome = {
    wanted = wanted, granted = #ids, slots = slots, tokens = tokens,
    has_ready = redis.call('EXISTS', fifo, ready) > 0 or is_cut, has_parked = redis.call('EXISTS', parked) == 1,
  }
  local held = held_back(limits, debt, outcome)
  if held ~= '' then count_held(string.sub(held, 1, 1), 1) end
  if not (limits.in_flight or limits.rate or limits.per_key or outcome.has_parked) then tidy_limits() end
  local more = false
  if #ids < math.min(slots, tokens) then
    more = outcome.has_ready or (#ids >= wanted and outcome.has_parked)
  end
  return ids, given, before, settled_terms, more, held
end
