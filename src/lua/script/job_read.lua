--! keys: defs run scheduled retrying leases failures terms outputs progress history
--! args: values ...
--! flags: no-writes
--! returns: for each id: nothing, or definition, run, place (s scheduled, w retrying, q neither), run_at there, expiry of its lease, failure, terms, output, progress, history
-- Reads jobs with all their columns; without values (0), payload and output are left out.
local found = {}
for at = args_read + 1, #ARGV do
  local id = ARGV[at]
  local def = redis.call('HGET', defs, id)
  if def then
    local sequence, priority = string.sub(def, 15, 28), string.match(def, '^(%-?%d+) ', 30) or ''
    local member = sequence .. priority .. ':' .. id
    local due = redis.call('ZSCORE', scheduled, member)
    local retry = not due and redis.call('ZSCORE', retrying, member)
    if values == '0' then def = string.match(def, '^[^\n]*\n[^\n]*\n[^\n]*\n') end
    found[#found + 1] = {
      def, redis.call('HGET', run, id), due and 's' or retry and 'w' or 'q', due or retry or '', redis.call('ZSCORE', leases, id),
      redis.call('HGET', failures, id), redis.call('HGET', terms, id),
      values ~= '0' and redis.call('HGET', outputs, id), redis.call('HGET', progress, id), redis.call('HGET', history, id),
    }
  else
    found[#found + 1] = false
  end
end
return found
