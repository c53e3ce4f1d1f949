--! keys: defs run leases terms
--! args: owner from count
--! flags: no-writes
--! returns: now_us, how many leases were looked at, ids, definitions, runs and terms of those whose token has `:worker:nonce.` in it
-- Finds what a claim was given whose answer was lost, page by page.
--@include now
--@include batch
local looked = redis.call('ZRANGE', leases, from, from + count - 1)
local ids, runs = {}, {}
for index, text in ipairs(read('HMGET', run, looked)) do
  if text and string.find(text, owner, 1, true) then
    ids[#ids + 1] = looked[index]
    runs[#runs + 1] = text
  end
end
return { string.format('%.0f', now_us), #looked, ids, read('HMGET', defs, ids), runs, read('HMGET', terms, ids) }
