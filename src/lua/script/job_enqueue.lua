--! keys: meta defs fifo ready scheduled aside deadlines idempotency keyed
--! args: ...3
--! returns: one letter a job (q queued, s scheduled, e the id exists, d the key exists), ids of those that own the keys, w when the lane has something to start sooner than before
-- Stores new jobs: for each id, spec, definition. spec: nothing, or `<priority> <run_at> <delay_ms> <deadline> <key>`, all but the first may be nothing.
--@include now
--@include batch
local last = string.sub(redis.call('LINDEX', fifo, -1) or '', 1, 13)
local ids, seen, owners = {}, {}, {}
for at = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local existing = read('HMGET', defs, ids)
for at = 2, #ARGV, 3 do
  local name = ARGV[at] ~= '' and string.match(ARGV[at], '^%S+ %S* %S* %S* (.+)$')
  if name and owners[name] == nil then owners[name] = redis.call('HGET', idempotency, name) end
end
local sequence = tonumber(redis.call('HGET', meta, 'sequence') or 0)
-- Sequences have 14 digits.
if not sequence or sequence < 0 or sequence > 99999999990000 then
  return redis.error_reply('HOLDFAST_DAMAGED a counter of the lane is no number')
end
local letters, deduplicated, first_at = {}, {}, nil
local stored, fresh, prior, later, beside, limits, keys, names = {}, {}, {}, {}, {}, {}, {}, {}
local SPEC = '^(%-?%d+) (%-?%d*) (%d*) (%-?%d*) (.*)$'
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
    local priority, run_at, delay, deadline, name = string.match(spec == '' and '0    ' or spec, SPEC)
    if not priority or deadline == '-' or run_at == '-' then return redis.error_reply('HOLDFAST_ARGUMENTS job_enqueue') end
    if name ~= '' and owners[name] then
      letters[index] = 'd'
      deduplicated[#deduplicated + 1] = owners[name]
    else
      local at = run_at ~= '' and tonumber(run_at) or now + (delay ~= '' and delay or 0)
      letters[index], seen[id] = at > now and 's' or 'q', true
      local at_text = string.format('%.0f', at)
      add(stored, id, now_text .. ' ' .. number .. ' ' .. priority .. ' ' .. deadline .. ' ' .. at_text .. '\n' .. body)
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
      if deadline ~= '' then add(limits, deadline, id) end
      if name ~= '' then
        owners[name] = id
        add(keys, name, id)
        add(names, id, name)
      end
    end
  end
end
local first_due = first_at and redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
local wakes = first_at and (not first_due or first_at < tonumber(first_due))
-- An order that exists has something to run in it: what was removed from it goes when it is all that is left.
if not wakes and #fresh + #prior > 0 and last == '' then wakes = redis.call('EXISTS', ready) == 0 end
-- A key of another type must fail before anything is written.
if #prior > 0 then redis.call('ZCARD', ready) end
if #beside > 0 then redis.call('ZCARD', aside) end
if #limits > 0 then redis.call('ZCARD', deadlines) end
if #keys > 0 then redis.call('HLEN', keyed) end
if #stored > 0 then redis.call('HINCRBY', meta, 'sequence', #ids) end
write('HSET', defs, stored)
write('RPUSH', fifo, fresh)
write('ZADD', ready, prior)
write('ZADD', scheduled, later)
write('ZADD', aside, beside)
write('ZADD', deadlines, limits)
write('HSET', idempotency, keys)
write('HSET', keyed, names)
return { table.concat(letters), deduplicated, wakes and 'w' or '' }
