--! keys: run fifo aside leases completed cancelled dlq
--! args: before limit sources
--! flags: no-writes
--! returns: up to `limit` ids of each source that came before the sequence `before`, newest first, and their sequences
-- Names jobs of a lane, newest first. sources: letters of fifo f, aside a, leases l, completed c, cancelled k, dlq d.
--@include batch
local ids, sequences = {}, {}
local function found_one(id, sequence)
  ids[#ids + 1] = id
  sequences[#sequences + 1] = sequence
end
local RUNNING_MAX = 10000
local SETS = { a = aside, c = completed, k = cancelled, d = dlq }
for letter in string.gmatch(sources, '[ackd]') do
  local found = redis.call('ZREVRANGEBYSCORE', SETS[letter], '(' .. before, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
  for index = 1, #found, 2 do found_one(found[index], found[index + 1]) end
end
if string.find(sources, 'l', 1, true) then
  -- Running jobs are as many as the workers have slots, so all of them are looked at, up to a bound.
  local running = redis.call('ZRANGE', leases, -RUNNING_MAX, -1)
  for index, text in ipairs(read('HMGET', run, running)) do
    local sequence = text and string.match(text, '|(%d+)|%d*,%d+,%-?%d+$')
    if sequence and tonumber(sequence) < tonumber(before) then found_one(running[index], sequence) end
  end
end
if string.find(sources, 'f', 1, true) then
  -- fifo is in the order of sequences too: the first place that does not come before.
  local low, high = 0, redis.call('LLEN', fifo)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local sequence = tonumber(string.sub(redis.call('LINDEX', fifo, middle), 14, 27)) or 0
    if sequence >= tonumber(before) then high = middle else low = middle + 1 end
  end
  local count = 0
  while high > 0 and count < tonumber(limit) do
    local from = math.max(0, high - 500)
    local entries = redis.call('LRANGE', fifo, from, high - 1)
    for index = #entries, 1, -1 do
      if #entries[index] > 27 and count < tonumber(limit) then
        found_one(string.sub(entries[index], 28), string.sub(entries[index], 14, 27))
        count = count + 1
      end
    end
    high = from
  end
end
return { ids, sequences }
