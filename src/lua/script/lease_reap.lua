--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress logs completed cancelled dlq keep keep_outputs concurrency parked
--! args: limit others ...10
--! flags: allow-oom
--! returns: verdicts, now, ids of up to limit expired leases, their expiries, definitions, runs, terms
-- Applies decisions about expired leases, if they are still expired, then names more that are.
-- One whose job cannot be read is put off for an hour, so that it hides no other. One of a job that does not run is nobody's, and goes.
--@include now
--@include batch
--@include settle_other
--@include sound
if #ARGV ~= args_read + others * 10 then return redis.error_reply('HOLDFAST_ARGUMENTS lease_reap') end
local asked = read_others(tonumber(others))
check_keys()
for _, each in ipairs(asked) do verdicts[#verdicts + 1] = settle_other(each, true) end
local found = limit == '0' and {} or redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local looked, ids, expiries, definitions, runs, put_off, stray = {}, {}, {}, {}, {}, {}, {}
for index = 1, #found, 2 do looked[#looked + 1] = found[index] end
local all_definitions, all_runs = read('HMGET', defs, looked), read('HMGET', run, looked)
for index, id in ipairs(looked) do
  local def, text, n = all_definitions[index], all_runs[index], #ids + 1
  local job = def and text and header_of(def) and run_of(text)
  if job and job.state ~= 'R' and job.state ~= 'X' then
    add(stray, id)
  elseif job then
    -- Only the lines before the payload are of use to the reader.
    ids[n], expiries[n], definitions[n], runs[n] = id, found[index * 2], string.match(def, '^[^\n]*\n[^\n]*\n[^\n]*\n'), text
  else
    add(put_off, string.format('%.0f', now + 3600000), id)
  end
end
write('ZADD', leases, put_off)
write('ZREM', leases, stray)
return { table.concat(verdicts), string.format('%.0f', now), ids, expiries, definitions, runs, read('HMGET', terms, ids) }
