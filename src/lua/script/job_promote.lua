--! keys: defs run ready scheduled retrying aside deadlines
--! args: ...
--! flags: allow-oom
--! returns: one letter an id: p promoted, i in another state, n not found, x damaged
-- Makes scheduled and retrying jobs due now.
--@include now
--@include waiting
for _, set in ipairs({ ready, scheduled, retrying, aside, deadlines }) do redis.call('ZCARD', set) end
local letters = {}
for at = 1, #ARGV do
  local id = ARGV[at]
  local def, text = redis.call('HGET', defs, id), redis.call('HGET', run, id)
  if not def then
    letters[at] = 'n'
  elseif not header_of(def) or (text and not run_of(text)) then
    letters[at] = 'x'
  else
    local head = header_of(def)
    local member = head.sequence .. head.priority .. ':' .. id
    if redis.call('ZREM', scheduled, member) + redis.call('ZREM', retrying, member) == 0 then
      letters[at] = 'i'
    else
      local job = text and run_of(text) or
        { token = '', attempts = 0, crashes = '0', sequence = head.sequence, started = '' }
      job.state, job.updated, job.run_at = 'Q', now_text, now_text
      redis.call('HSET', run, id, run_text(job))
      place_ready(id, head, now)
      letters[at] = 'p'
    end
  end
end
return table.concat(letters)
