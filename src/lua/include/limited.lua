-- A claim on a lane under limits. What runs is counted from the leases, so no end of an attempt can forget to give a place back. A job whose
-- key is at its limit is parked when a claim meets it, and met again only under its key, when that has a free place.
-- Cost, with n granted, R running, K keys with parked jobs: O(R) to count when keys are limited, min(K, DIGESTS_MAX) look-ups, O(n) to grant,
-- and at most LOOKED_MAX parked, each once for each time its key fills up.
-- All of it is made by a claim on a lane that has limits, since to make a function costs something too.
local function limited_claims(limits_text)
--@include limits
--@include park
local DIGESTS_MAX = 100
local LOOKED_MAX = 400
local ASIDE_MAX = 1000

-- How many jobs run with each key, by digest. What this very turn has completed still has its lease.
local function held_digests()
  local done, held = {}, {}
  for _, id in ipairs(completed_leases) do done[id] = true end
  local ids = redis.call('ZRANGE', leases, 0, redis.call('ZCARD', leases))
  for index, key in ipairs(read('HMGET', concurrency, ids)) do
    if key and not done[ids[index]] then
      local digest = redis.sha1hex(key)
      held[digest] = (held[digest] or 0) + 1
    end
  end
  return held
end

-- The digests with parked jobs from `after` on, round to it again; and behind which the next claim goes on.
local function parked_digests(after)
  local digests, from = {}, after == '' and '-' or '(' .. after .. ':'
  local is_round = after == ''
  while #digests < DIGESTS_MAX do
    local member = redis.call('ZRANGEBYLEX', parked, from, '+', 'LIMIT', 0, 1)[1]
    local digest = member and string.sub(member, 1, 40)
    if not digest and not is_round then
      is_round, from = true, '-'
    elseif not digest or (after ~= '' and is_round and digest > after) then
      return digests, ''
    else
      digests[#digests + 1] = digest
      from = '(' .. digest .. ':'
    end
  end
  return digests, digests[#digests]
end

-- As many of each key as it has free places, in the order in which they run. Also whether more might be free than were read.
local function free_parked(limits, held, allowed)
  local digests, after = parked_digests(limits.after)
  local most, found, is_cut = math.max(1, math.floor(ASIDE_MAX / math.max(1, #digests))), {}, false
  for _, digest in ipairs(digests) do
    local free = math.min(allowed, (limits.per_key or allowed) - (limits.per_key and held[digest] or 0))
    if free > most then is_cut = true end
    if free > 0 then
      local members = redis.call('ZRANGEBYLEX', parked, '[' .. digest, '(' .. digest .. ':', 'LIMIT', 0, math.min(free, most))
      for _, member in ipairs(members) do
        found[#found + 1] = { digest = digest, order = string.sub(member, 41), member = member }
      end
    end
  end
  table.sort(found, function(a, b) return a.order < b.order end)
  return found, after, is_cut
end

--@include limited_pick
--@include limited_grant
local limits = read_limits(limits_text)
return function(wanted, removed)
  return grant_limited(limits, wanted, removed)
end
end
