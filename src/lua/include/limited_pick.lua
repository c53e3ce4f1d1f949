-- What is ready, in order, up to a window: each with its digest when it has a key. Also what of fifo and ready goes with it.
local function ready_window(allowed, removed)
  local entries, scores, fifo_taken = first_waiting(allowed + LOOKED_MAX, removed)
  local ids, window = {}, { fifo_taken = fifo_taken }
  for index, entry in ipairs(entries) do ids[index] = string.sub(entry, 28) end
  local keys = read('HMGET', concurrency, ids)
  for index, entry in ipairs(entries) do
    window[index] = {
      order = rank_of(scores[index] or 0) .. entry, is_fresh = not scores[index],
      digest = keys[index] and redis.sha1hex(keys[index]) or nil,
    }
  end
  return window
end

-- Chooses up to `allowed` of what is ready and what is parked and free, and what is to be parked on the way. `looked`: how much of the
-- window had been used up by then.
local function pick(limits, allowed, removed)
  local held = limits.per_key and held_digests() or {}
  local aside_free, after, is_cut = free_parked(limits, held, allowed)
  local window = ready_window(allowed, removed)
  local picks, parks, w, a = {}, {}, 1, 1
  while #picks < allowed do
    local first, other = window[w], aside_free[a]
    local is_parked = other and (not first or other.order < first.order)
    -- Behind the window there may be some that come before what is parked.
    if not first and #window >= allowed + LOOKED_MAX then break end
    local each = is_parked and other or first
    if not each then break end
    if is_parked then a = a + 1 else w = w + 1 end
    local count = each.digest and held[each.digest] or 0
    if each.digest and limits.per_key and count >= limits.per_key then
      if not is_parked then
        each.looked = w - 1
        parks[#parks + 1] = each
      end
    else
      if each.digest then held[each.digest] = count + 1 end
      each.looked = w - 1
      picks[#picks + 1] = each
    end
  end
  return { picks = picks, parks = parks, looked = w - 1, window = window, after = after, is_cut = is_cut }
end

-- As much of it as a reply carries, in the form that `grant` takes. All is read here, nothing is written.
local function pickable(picked)
  local picks, looked, ids, entries, may_have_run, unparked = picked.picks, picked.looked, {}, {}, {}, {}
  for index, each in ipairs(picks) do
    entries[index] = string.sub(each.order, 11)
    ids[index] = string.sub(each.order, 38)
    may_have_run[index] = not each.is_fresh or nil
  end
  local definitions = read_definitions(ids)
  if #definitions < #picks then looked = picks[#definitions].looked end
  for index = 1, #definitions do unparked[#unparked + 1] = picks[index].member end
  local runs, ready_ids = runs_before(ids, may_have_run, #definitions)
  local parks, fresh = {}, 0
  for _, each in ipairs(picked.parks) do
    if each.looked <= looked then parks[#parks + 1] = each end
  end
  for index = 1, looked do
    if picked.window[index].is_fresh then fresh = fresh + 1 end
  end
  local from_fifo = looked > 0 and (picked.window.fifo_taken[looked] or looked) or 0
  return {
    entries = entries, ids = ids, definitions = definitions, runs = runs, ready_ids = ready_ids, parks = parks, unparked = unparked,
    move_aside = move_aside,
    taken = { looked - fresh, from_fifo }, skipped = from_fifo - fresh,
  }
end
