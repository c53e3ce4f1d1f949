--! keys: meta defs fifo ready scheduled aside deadlines idempotency keyed
--! args: ...
--! returns: one letter a job (q queued, s scheduled, e the id exists, d the key exists), ids of those that own the keys, w when the lane has something to start sooner than before
-- Stores new jobs: for each id, spec, definition. spec: nothing, or `<priority> <run_at> <delay_ms> <deadline> <key>`.
--@include now
--@include batch
local last = string.sub(redis.call('LINDEX', fifo, -1) or '', 1, 13)
local ids, named, seen, owners = {}, {}, {}, {}
for at = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local existing = read('HMGET', defs, ids)
for at = 2, #ARGV, 3 do
  local name = ARGV[at] ~= '' and string.match(ARGV[at], '^%S+ %S* %S* %S* (.+)$')
  if name and not owners[name] then
    named[#named + 1] = name
    owners[name] = redis.call('HGET', idempotency, name)
  end
end

local sequence = redis.call('HINCRBY', meta, 'sequence', #ids) - #ids
local letters, deduplicated, first_at = {}, {}, nil
local stored, fresh, prior, later, beside, limits, keys, names = {}, {}, {}, {}, {}, {}, {}, {}
local function add(list, first, second)
  list[#list + 1] = first
  list[#list + 1] = second
end

for index, id in ipairs(ids) do
  local spec, body = ARGV[index * 3 - 1], ARGV[index * 3]
  local number = string.format('%014.0f', sequence + index)
  if existing[index] or seen[id] then
    letters[index] = 'e'
  elseif spec == '' and now_text >= last then
    letters[index], seen[id] = 'q', true
    add(stored, id, now_text .. ' ' .. number .. ' 0  \n' .. body)
    fresh[#fresh + 1] = now_text .. number .. id
  else
    local priority, run_at, delay, deadline, name = string.match(spec, '^(%S+) (%S*) (%S*) (%S*) (.*)$')
    priority, name = priority or '0', name or ''
    if name ~= '' and owners[name] then
      letters[index] = 'd'
      deduplicated[#deduplicated + 1] = owners[name]
    else
      local at = run_at and run_at ~= '' and tonumber(run_at) or now + tonumber(delay ~= '' and delay or 0)
      letters[index], seen[id] = at > now and 's' or 'q', true
      local at_text = string.format('%.0f', at)
      add(stored, id, now_text .. ' ' .. number .. ' ' .. priority .. ' ' .. (deadline or '') .. ' ' .. at_text .. '\n' .. body)
      if at > now then
        add(later, at_text, number .. priority .. ':' .. id)
        add(beside, number, id)
        first_at = math.min(first_at or at, at)
      elseif priority == '0' and at == now and now_text >= last then
        fresh[#fresh + 1] = now_text .. number .. id
      else
        add(prior, -priority, string.format('%013.0f', at) .. number .. id)
        add(beside, number, id)
      end
      if deadline and deadline ~= '' then add(limits, deadline, id) end
      if name ~= '' then
        owners[name] = id
        add(keys, name, id)
        add(names, id, name)
      end
    end
  end
end
local wakes = false
if first_at then
  local first_due = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
  wakes = not first_due or first_at < tonumber(first_due)
end
-- An order that exists has something to run in it: what was removed from it goes when it is all that is left.
if not wakes and #fresh + #prior > 0 and last == '' then wakes = redis.call('EXISTS', ready) == 0 end
write('HSET', defs, stored)
write('RPUSH', fifo, fresh)
write('ZADD', ready, prior)
write('ZADD', scheduled, later)
write('ZADD', aside, beside)
write('ZADD', deadlines, limits)
write('HSET', idempotency, keys)
write('HSET', keyed, names)
return { table.concat(letters), deduplicated, wakes and 'w' or '' }
