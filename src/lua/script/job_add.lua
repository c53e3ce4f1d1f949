--! keys: meta defs fifo ready wake?
--! args: id definition
--! returns: q and then w when nothing else of the lane could run, n when it is the first of the lane; e the id exists; or nothing: nothing was done, it is a case for job_enqueue
-- Stores one plain job: the most usual call, with half the work of job_enqueue. With the wake list of the lane it wakes a worker, too.
--@include wake
local time = redis.call('TIME')
local now_text = string.format('%013.0f', math.floor(time[1] * 1000 + time[2] / 1000))
local last = redis.call('LINDEX', fifo, -1)
if last and now_text < string.sub(last, 1, 13) then return '' end
if redis.call('HEXISTS', defs, id) == 1 then return 'e' end
local sequence = redis.call('HINCRBY', meta, 'sequence', 1)
local number = string.format('%014.0f', sequence)
if sequence < 1 or #number ~= 14 then
  redis.call('HINCRBY', meta, 'sequence', -1)
  return ''
end
redis.call('HSET', defs, id, now_text .. ' ' .. number .. ' 0  \n' .. definition)
local length = redis.call('RPUSH', fifo, now_text .. number .. id)
local flags = sequence == 1 and 'qn' or 'q'
if length > 1 or redis.call('EXISTS', ready) == 1 then return flags end
if wake then wake_one(1) end
return flags .. 'w'
