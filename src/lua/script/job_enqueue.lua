--! keys: meta defs fifo ready scheduled aside deadlines idempotency keyed concurrency wake?
--! args: ...3
--! returns: one letter a job (q queued, s scheduled, e the id exists, d the key exists, r refused by the rate of the lane), ids of those that own the keys, w when the lane has something to start sooner than before, n when they are the first of the lane; ms until those that were refused may come again
-- Stores new jobs: for each id, spec, definition. spec: nothing, or `<priority> <run_at> <delay_ms> <deadline> <key>`, all but the
-- first may be nothing; before it `@<bytes> <concurrency key> ` of a job that has one.
-- With the wake list of the lane it wakes a worker, too.
--@include now
--@include batch
--@include spec
--@include admit
--@include wake
local last = string.sub(redis.call('LINDEX', fifo, -1) or '', 1, 13)
local is_plain, ids, seen = now_text >= last, {}, {}
for at = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local existing = read('HMGET', defs, ids)
local specs, owners = read_specs(#ids, is_plain)
local sequence, gate = redis.call('HINCRBY', meta, 'sequence', #ids) - #ids, nil
if sequence >= GATED then sequence, gate = sequence - GATED, open_gate(#ids) end
if sequence < 0 or sequence + #ids > SEQUENCE_MAX then
  redis.call('HINCRBY', meta, 'sequence', -#ids)
  return redis.error_reply('HOLDFAST_DAMAGED the sequence of the lane')
end
local letters, deduplicated, first_at = {}, {}, nil
local stored, fresh, prior, later, beside, limits, keys, names, shares = {}, {}, {}, {}, {}, {}, {}, {}, {}
for index, id in ipairs(ids) do
  local spec, body, number = specs[index], ARGV[index * 3], string.format('%014.0f', sequence + index)
  if existing[index] or seen[id] then
    letters[index] = 'e'
  elseif spec and owners[spec.name] then
    letters[index] = 'd'
    deduplicated[#deduplicated + 1] = owners[spec.name]
  elseif not is_admitted(gate) then
    letters[index] = 'r'
  elseif not spec then
    letters[index], seen[id] = 'q', true
    add(stored, id, now_text .. ' ' .. number .. ' 0  \n' .. body)
    fresh[#fresh + 1] = now_text .. number .. id
  else
    local priority, deadline, name = spec.priority, spec.deadline, spec.name
    local at = spec.run_at ~= '' and tonumber(spec.run_at) or now + (spec.delay ~= '' and spec.delay or 0)
    letters[index], seen[id] = at > now and 's' or 'q', true
    local at_text = string.format('%.0f', at)
    add(stored, id, now_text .. ' ' .. number .. ' ' .. priority .. ' ' .. deadline .. ' ' .. at_text .. '\n' .. body)
    if at > now then
      add(later, at_text, number .. priority .. ':' .. id)
      add(beside, number, id)
      first_at = math.min(first_at or at, at)
    elseif priority == '0' and at == now and is_plain then
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
    if spec.shared ~= '' then add(shares, id, spec.shared) end
  end
end
local is_sooner = false
if first_at then
  local first_due = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
  is_sooner = not first_due or first_at < tonumber(first_due)
end
-- An order that exists has something to run in it: what was removed from it goes when it is all that is left.
if not is_sooner and #fresh + #prior > 0 and last == '' then is_sooner = redis.call('EXISTS', ready) == 0 end
write('HSET', defs, stored)
write('RPUSH', fifo, fresh)
write('ZADD', ready, prior)
write('ZADD', scheduled, later)
write('ZADD', aside, beside)
write('ZADD', deadlines, limits)
write('HSET', idempotency, keys)
write('HSET', keyed, names)
write('HSET', concurrency, shares)
if is_sooner and wake then wake_one(1) end
return { table.concat(letters), deduplicated, (is_sooner and 'w' or '') .. (sequence == 0 and 'n' or ''), gate and close_gate(gate) }
