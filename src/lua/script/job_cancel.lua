--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress logs completed cancelled dlq keep keep_outputs concurrency parked
--! args: force keep_ms failure ...
--! flags: allow-oom
--! returns: one letter an id: c cancelled, r requested of the owner, t already terminal, n not found, x damaged
-- Cancels jobs that wait; asks the owner of a running one to stop, or with force takes it from its owner.
--@include now
--@include batch
--@include unplace
--@include finish
--@include sound
check_keys()
local letters = {}
for at = args_read + 1, #ARGV do
  local id = ARGV[at]
  local def, text = redis.call('HGET', defs, id), redis.call('HGET', run, id)
  local state = text and string.sub(text, 1, 1) or 'Q'
  if not def then
    letters[#letters + 1] = 'n'
  elseif not header_of(def) or (text and not run_of(text)) then
    letters[#letters + 1] = 'x'
  elseif state == 'C' or state == 'K' or state == 'D' then
    letters[#letters + 1] = 't'
  elseif (state == 'R' or state == 'X') and force ~= '1' then
    redis.call('HSET', run, id, 'X' .. string.sub(text, 2))
    letters[#letters + 1] = 'r'
  else
    local head = header_of(def)
    local job = text and run_of(text) or first_run(head)
    if state == 'R' or state == 'X' then
      redis.call('ZREM', leases, id)
      add_attempt(id, job, 'cancelled', '', failure)
    else
      unplace(id, head, text and job)
    end
    job.token = wiped(job.token)
    finish(id, job, { set = cancelled, state = 'K', keep_ms = keep_ms, code = '' })
    letters[#letters + 1] = 'c'
  end
end
return table.concat(letters)
