--! keys: defs run progress
--! args: ...3
--! returns: one letter an update: a applied, l lease lost, g gone
-- Stores how far running jobs are: for each id, token, value.
--@include batch
--@include held
local ids, stored, letters = {}, {}, {}
for at = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local texts = read('HMGET', run, ids)
for index, id in ipairs(ids) do
  local text, token = texts[index], ARGV[index * 3 - 1]
  if text and is_held(text, token) then
    letters[index] = 'a'
    add(stored, id, ARGV[index * 3])
  else
    letters[index] = (text or redis.call('HEXISTS', defs, id) == 1) and 'l' or 'g'
  end
end
write('HSET', progress, stored)
return table.concat(letters)
