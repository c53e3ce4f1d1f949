-- Nothing but removed entries is left: then fifo goes, so that one that exists has something to run.
local function drop_removed()
  local removed = tonumber(redis.call('HGET', meta, 'removed') or 0)
  if removed == 0 then return end
  if removed >= redis.call('LLEN', fifo) then
    redis.call('DEL', fifo)
    redis.call('HDEL', meta, 'removed')
  end
end
