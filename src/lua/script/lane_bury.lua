--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress logs completed cancelled dlq keep keep_outputs concurrency parked
--! args: limit keep_ms failure
--! flags: allow-oom
--! returns: ids that are dead now
-- Dead-letters jobs that waited past their deadline.
--@include now
--@include batch
--@include unplace
--@include finish
--@include sound
check_keys()
local buried = {}
local ids = redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, limit)
for _, id in ipairs(ids) do
  local def, text = redis.call('HGET', defs, id), redis.call('HGET', run, id)
  local head = def and header_of(def)
  local job = head and (text and run_of(text) or first_run(head))
  if job then
    unplace(id, head, text and job)
    if keep_ms ~= '0' then redis.call('HSETNX', failures, id, failure) end
    finish(id, job, { set = dlq, state = 'D', keep_ms = keep_ms, code = 'DEADLINE_EXCEEDED' })
    buried[#buried + 1] = id
  else
    redis.call('ZREM', deadlines, id)
  end
end
return buried
