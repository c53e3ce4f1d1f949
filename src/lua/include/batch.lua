-- Commands with many members, in chunks that unpack can take.
local CHUNK = 1000

local function add(list, first, second)
  list[#list + 1] = first
  list[#list + 1] = second
end

local function write(command, key, list)
  for from = 1, #list, CHUNK do
    redis.call(command, key, unpack(list, from, math.min(from + CHUNK - 1, #list)))
  end
end

local function read(command, key, list)
  if #list == 0 then return {} end
  if #list <= CHUNK then return redis.call(command, key, unpack(list)) end
  local all = {}
  for from = 1, #list, CHUNK do
    local part = redis.call(command, key, unpack(list, from, math.min(from + CHUNK - 1, #list)))
    for index = 1, #part do all[#all + 1] = part[index] end
  end
  return all
end
