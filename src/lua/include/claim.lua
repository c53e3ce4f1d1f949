--@include due
-- What a claim is given: first all of ready above priority 0, then ready at 0 and fifo by time and sequence, then the rest.
-- All is read first; what is granted is then taken off the front of both.
local MOVED_MAX = 250
local REMOVED_SKIPPED_MAX = 1000
local BYTES_MAX = 524288

local function first_score(set)
  return tonumber(redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
end

local function next_due()
  if not has_later then return nil end
  local first, second = first_score(scheduled), first_score(retrying)
  if first and second then return math.min(first, second) end
  return first or second
end

-- Entries in the order in which they run, up to `limit`; the scores of those that come from ready; and how many leave fifo up to each, removed ones
-- included (nothing there: as many as its place says). Also how many leave both orders when all are taken.
local function first_waiting(limit, removed)
  local prior = has_ready and redis.call('ZRANGE', ready, 0, limit - 1, 'WITHSCORES') or {}
  local window = limit + math.min(removed, REMOVED_SKIPPED_MAX)
  local fresh = redis.call('LRANGE', fifo, 0, window - 1)
  if #prior == 0 and removed == 0 then return fresh, {}, {}, { 0, #fresh } end
  local is_whole = #fresh < window
  local entries, is_ready, fifo_taken, p, f = {}, {}, {}, 1, 1
  while #entries < limit do
    while fresh[f] and #fresh[f] == 27 do f = f + 1 end
    local entry, score, next_fresh = prior[p], tonumber(prior[p + 1]), fresh[f]
    local n = #entries + 1
    if entry and (score < 0 or (not next_fresh and is_whole) or (score == 0 and next_fresh and entry < next_fresh)) then
      p = p + 2
      entries[n], is_ready[n] = entry, score
    elseif next_fresh then
      f = f + 1
      entries[n] = next_fresh
    else
      break
    end
    fifo_taken[n] = f - 1
  end
  return entries, is_ready, fifo_taken, { (p - 1) / 2, f - 1 }
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

-- `skipped` of the `removed` entries of fifo go with what is taken. A fifo of nothing but removed entries would look like work.
local function take_off(taken, skipped, removed)
  if taken[1] > 0 then redis.call('ZREMRANGEBYRANK', ready, 0, taken[1] - 1) end
  if taken[2] > 0 then redis.call('LTRIM', fifo, taken[2], -1) end
  if removed == 0 then return end
  if redis.call('LLEN', fifo) == removed - skipped then
    redis.call('DEL', fifo)
    redis.call('HDEL', meta, 'removed')
  elseif skipped > 0 then
    redis.call('HINCRBY', meta, 'removed', -skipped)
  end
end
