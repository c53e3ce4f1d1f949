--! keys: defs run leases
--! args: lease_ms ...2
--! flags: allow-oom
--! returns: one letter a lease: r renewed, c renewed and cancellation was requested, l lost, g gone
-- Moves the expiry of leases that are still held: for each id, token.
--@include now
--@include batch
--@include held
local ids, renewed, letters = {}, {}, {}
local expires = string.format('%.0f', now + lease_ms)
for at = args_read + 1, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
local texts = read('HMGET', run, ids)
for index, id in ipairs(ids) do
  local text, token = texts[index], ARGV[args_read + index * 2]
  if text and is_held(text, token) then
    letters[index] = string.byte(text, 1) == 88 and 'c' or 'r'
    add(renewed, expires, id)
  else
    letters[index] = (text or redis.call('HEXISTS', defs, id) == 1) and 'l' or 'g'
  end
end
write('ZADD', leases, renewed)
return table.concat(letters)
