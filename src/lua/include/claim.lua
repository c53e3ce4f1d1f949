--@include due
--@include removed
-- What a claim is given: first all of ready above priority 0, then ready at 0 and fifo by time and sequence, then the rest.
-- All is read first; what is granted is then taken off the front of both.
local MOVED_MAX = 250
local REMOVED_SKIPPED_MAX = 1000
local BYTES_MAX = 524288

local function first_score(set)
  return tonumber(redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
end

local function next_due()
  local first, second = first_score(scheduled), first_score(retrying)
  if first and second then return math.min(first, second) end
  return first or second
end

-- Up to `limit` of { entry, is_ready, ready_taken, fifo_taken }: the last two say how many leave each order with it and those before.
local function first_waiting(limit, removed)
  local prior = redis.call('ZRANGE', ready, 0, limit - 1, 'WITHSCORES')
  local window = limit + math.min(removed, REMOVED_SKIPPED_MAX)
  local fresh = redis.call('LRANGE', fifo, 0, window - 1)
  local is_whole = #fresh < window
  local found, p, f = {}, 1, 1
  while #found < limit do
    while fresh[f] and #fresh[f] == 27 do f = f + 1 end
    local entry, score, next_fresh = prior[p], tonumber(prior[p + 1]), fresh[f]
    if entry and (score < 0 or (not next_fresh and is_whole) or (score == 0 and next_fresh and entry < next_fresh)) then
      p = p + 2
      found[#found + 1] = { entry, true, (p - 1) / 2, f - 1 }
    elseif next_fresh then
      f = f + 1
      found[#found + 1] = { next_fresh, false, (p - 1) / 2, f - 1 }
    else
      break
    end
  end
  return found, { (p - 1) / 2, f - 1 }
end

-- As many definitions as a reply should carry, in chunks that grow with what the first ones showed.
local function read_definitions(ids)
  local all, bytes, chunk = {}, 0, 4
  while #all < #ids and bytes < BYTES_MAX do
    local part = redis.call('HMGET', defs, unpack(ids, #all + 1, math.min(#all + chunk, #ids)))
    for index = 1, #part do
      all[#all + 1] = part[index]
      bytes = bytes + (part[index] and #part[index] or 0)
    end
    chunk = math.max(1, math.min(250, math.floor((BYTES_MAX - bytes) / (bytes / #all + 1))))
  end
  return all
end

local function take_off(taken, removed)
  if taken[1] > 0 then redis.call('ZREMRANGEBYRANK', ready, 0, taken[1] - 1) end
  if taken[2] > 0 then redis.call('LTRIM', fifo, taken[2], -1) end
  if removed > 0 then redis.call('HINCRBY', meta, 'removed', -removed) end
  drop_removed()
end
