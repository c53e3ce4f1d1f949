--@include claim
-- Gives leases. A job that runs for the first time gets the server's microseconds as its epoch; a later run one above the last at least.
local function epoch_after(token)
  local last = tonumber(string.match(token, '^(%d+)') or 0)
  return string.format('%.0f', math.max(last + 1, now_us))
end

-- The runs before, by id: only what comes from ready may have run.
local function runs_before(found)
  local ids, runs = {}, {}
  for _, each in ipairs(found) do
    if each[2] then ids[#ids + 1] = string.sub(each[1], 28) end
  end
  for index, text in ipairs(read('HMGET', run, ids)) do runs[ids[index]] = text end
  return runs, ids
end

-- What may be granted of what waits: as much as one reply carries. Also how much of both orders it takes with it.
local function grantable(limit, removed)
  local found, taken = first_waiting(limit, removed)
  local ids = {}
  for index, each in ipairs(found) do ids[index] = string.sub(each[1], 28) end
  local all = read_definitions(ids)
  if #all < #found then taken = { found[#all][3], found[#all][4] } end
  for index = #found, #all + 1, -1 do found[index] = nil end
  return found, ids, all, taken
end

-- Returns ids, definitions, the runs before and the terms of those that ran before, all in one order; the last two empty if none did.
local function grant(limit, removed)
  local found, candidates, all, taken = grantable(limit, removed)
  local runs, ready_ids = runs_before(found)
  local expires, tail = string.format('%.0f', now + lease_ms), '|' .. now_text .. ',' .. now_text .. ','
  local first_epoch, rest = string.format('%.0f', now_us), ':' .. worker .. ':' .. nonce .. '.'
  local ids, given, before, records, expiries = {}, {}, {}, {}, {}
  local has_run, fresh = false, 0
  for index, each in ipairs(found) do
    local id, def = candidates[index], all[index]
    if not each[2] then fresh = fresh + 1 end
    if def then
      local n, epoch, counts = #ids + 1, first_epoch, '|1|0|'
      ids[n], given[n], before[n] = id, def, ''
      local last = runs[id] and run_of(runs[id])
      if last then
        has_run, before[n], epoch = true, runs[id], epoch_after(last.token)
        counts = '|' .. (last.attempts + 1) .. '|' .. last.crashes .. '|'
      end
      local pair = n * 2
      records[pair - 1] = id
      records[pair] = 'R' .. epoch .. rest .. (ordinal + n - 1) .. counts .. string.sub(each[1], 14, 27) .. tail .. string.sub(each[1], 1, 13)
      expiries[pair - 1], expiries[pair] = expires, id
    end
  end
  local settled_terms = has_run and read('HMGET', terms, ids) or {}
  take_off(taken, taken[2] - fresh, removed)
  if #found > #ids then redis.call('HINCRBY', meta, 'orphans', #found - #ids) end
  write('ZREM', aside, ready_ids)
  if redis.call('EXISTS', deadlines) == 1 then write('ZREM', deadlines, ids) end
  write('HSET', run, records)
  write('ZADD', leases, expiries)
  return ids, given, has_run and before or {}, settled_terms
end
