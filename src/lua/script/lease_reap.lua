--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress completed cancelled dlq keep keep_outputs
--! args: limit others ...10
--! flags: allow-oom
--! returns: verdicts, now, ids of up to limit expired leases, their expiries, definitions, runs, terms
-- Applies decisions about expired leases, if they are still expired, then names more that are.
--@include now
--@include batch
--@include settle_other
--@include sound
if #ARGV ~= args_read + others * 10 then return redis.error_reply('HOLDFAST_ARGUMENTS lease_reap') end
local asked = read_others(tonumber(others))
check_keys()
for _, each in ipairs(asked) do verdicts[#verdicts + 1] = settle_other(each, true) end
local found = limit == '0' and {} or redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local ids, expiries = {}, {}
for index = 1, #found, 2 do
  ids[#ids + 1] = found[index]
  expiries[#expiries + 1] = found[index + 1]
end
local definitions = read('HMGET', defs, ids)
for index = 1, #definitions do
  -- Only the lines before the payload are of use here.
  definitions[index] = definitions[index] and string.match(definitions[index], '^[^\n]*\n[^\n]*\n[^\n]*\n')
end
return {
  table.concat(verdicts), string.format('%.0f', now), ids, expiries, definitions, read('HMGET', run, ids), read('HMGET', terms, ids),
}
