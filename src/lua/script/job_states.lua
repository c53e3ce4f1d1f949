--! keys: defs run scheduled retrying aside
--! args: ...
--! flags: no-writes
--! returns: one letter an id: n not there, r running, q queued, s scheduled, w waits for a retry, c completed, k cancelled, d dead
-- The states of jobs and nothing else of them: what many who wait for an end look at again and again.
--@include batch
--@include record
local OF_RUN = { R = 'r', X = 'r', Q = 'q', C = 'c', K = 'k', D = 'd' }
local letters = {}
for index, text in ipairs(read('HMGET', run, ARGV)) do
  local letter = text and OF_RUN[string.sub(text, 1, 1)]
  if not letter and not text and not redis.call('ZSCORE', aside, ARGV[index]) then
    -- In fifo, if anywhere. A definition is as large as its payload, so it is not read for this.
    letter = redis.call('HEXISTS', defs, ARGV[index]) == 1 and 'q' or 'n'
  elseif not letter then
    local head = header_of(redis.call('HGET', defs, ARGV[index]) or '')
    local set = text and retrying or scheduled
    if not head then letter = 'n'
    elseif redis.call('ZSCORE', set, head.sequence .. head.priority .. ':' .. ARGV[index]) then letter = text and 'w' or 's'
    else letter = 'q' end
  end
  letters[index] = letter
end
return table.concat(letters)
