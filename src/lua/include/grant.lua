--@include claim
-- Gives leases. A job that runs for the first time gets the server's microseconds as its epoch; a later run one above the last at least.
local function epoch_after(token)
  local last = tonumber(string.match(token, '^(%d+)') or 0)
  return string.format('%.0f', math.max(last + 1, now_us))
end

-- The runs before, by place: only what comes from ready may have run. Also the ids of those.
local function runs_before(ids, is_ready, count)
  local ready_ids, places, runs = {}, {}, {}
  for index = 1, next(is_ready) and count or 0 do
    if is_ready[index] then
      ready_ids[#ready_ids + 1] = ids[index]
      places[#places + 1] = index
    end
  end
  for index, text in ipairs(read('HMGET', run, ready_ids)) do runs[places[index]] = text end
  return runs, ready_ids
end

-- What may be granted of what waits: as much as one reply carries.
local function grantable(limit, removed)
  local entries, is_ready, fifo_taken, taken = first_waiting(limit, removed)
  local ids = {}
  for index, entry in ipairs(entries) do ids[index] = string.sub(entry, 28) end
  local all = read_definitions(ids)
  local runs, ready_ids = runs_before(ids, is_ready, #all)
  if #all < #entries then taken = { #ready_ids, fifo_taken[#all] or #all } end
  local skipped = taken[2] - (#all - #ready_ids)
  return { entries = entries, ids = ids, definitions = all, runs = runs, ready_ids = ready_ids, taken = taken, skipped = skipped }
end

-- Returns ids, definitions, the runs before and the terms of those that ran before, all in one order; the last two empty if none did.
local function grant(found, removed)
  local expires, tail = string.format('%.0f', now + lease_ms), '|' .. now_text .. ',' .. now_text .. ','
  local first_epoch, rest = string.format('%.0f', now_us), ':' .. worker .. ':' .. nonce .. '.'
  local ids, given, before, records, expiries, has_run = {}, {}, {}, {}, {}, false
  for index, def in ipairs(found.definitions) do
    if def then
      local id, entry, n, epoch, counts = found.ids[index], found.entries[index], #ids + 1, first_epoch, '|1|0|'
      ids[n], given[n], before[n] = id, def, found.runs[index] or ''
      local last = found.runs[index] and run_of(found.runs[index])
      if last then
        has_run, epoch = true, epoch_after(last.token)
        counts = '|' .. (last.attempts + 1) .. '|' .. last.crashes .. '|'
      end
      local pair = n * 2
      records[pair - 1] = id
      records[pair] = 'R' .. epoch .. rest .. (ordinal + n - 1) .. counts .. string.sub(entry, 14, 27) .. tail .. string.sub(entry, 1, 13)
      expiries[pair - 1], expiries[pair] = expires, id
    end
  end
  local settled_terms = has_run and read('HMGET', terms, ids) or {}
  local count = #found.definitions
  take_off(found.taken, found.skipped, removed)
  if found.move_aside then found.move_aside(found) end
  if count > #ids then redis.call('HINCRBY', meta, 'orphans', count - #ids) end
  write('ZREM', aside, found.ready_ids)
  if has_later then write('ZREM', deadlines, ids) end
  write('HSET', run, records)
  write('ZADD', leases, expiries)
  return ids, given, has_run and before or {}, settled_terms
end
