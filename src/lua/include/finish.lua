--@include record
-- How jobs end. A terminal job is in one of completed, cancelled, dlq by sequence, with what is known of its end in `run`, and in
-- keep when it is to be removed some day.
local function forget(ids)
  write('HDEL', defs, ids)
  write('HDEL', run, ids)
  if redis.call('EXISTS', failures, terms, history, outputs, progress, logs, keyed, concurrency) == 0 then return end
  for _, column in ipairs({ failures, terms, history, outputs, progress, logs, concurrency }) do
    if redis.call('EXISTS', column) == 1 then write('HDEL', column, ids) end
  end
  if redis.call('EXISTS', keyed) == 0 then return end
  local named, owners = {}, {}
  for index, name in ipairs(read('HMGET', keyed, ids)) do
    if name then
      named[#named + 1] = name
      owners[#owners + 1] = ids[index]
    end
  end
  write('HDEL', idempotency, named)
  write('HDEL', keyed, owners)
end

-- Takes terminal jobs out of the sets of `completed`, `cancelled`, `dlq`, `keep`, `keep_outputs` and forgets them.
local function remove_ended(ids)
  for _, set in ipairs({ completed, cancelled, dlq, keep, keep_outputs }) do
    if redis.call('EXISTS', set) == 1 then write('ZREM', set, ids) end
  end
  forget(ids)
end

local function add_attempt(id, job, outcome, duration, failure)
  local line = job.attempts .. '|' .. job.token .. '|' .. job.started .. '|' .. now_text .. '|'
    .. outcome .. '|' .. duration .. '|' .. failure .. '\n'
  redis.call('HSET', history, id, (redis.call('HGET', history, id) or '') .. line)
end

-- `ending`: set, state (D or K), keep_ms (text, empty: for ever), code. `job` is the parsed run.
local function finish(id, job, ending)
  if ending.keep_ms == '0' then return forget({ id }) end
  job.state = ending.state
  job.updated = now_text
  redis.call('HSET', run, id, run_text(job) .. '|' .. job.asked .. '|' .. ending.code)
  redis.call('ZADD', ending.set, job.sequence, id)
  if ending.keep_ms ~= '' then redis.call('ZADD', keep, string.format('%.0f', now + ending.keep_ms), id) end
end

-- The run of a job that never ran, for one that ends or is moved before its first claim.
local function first_run(head)
  return {
    state = 'Q', token = '', attempts = 0, crashes = '0', sequence = head.sequence, started = '', updated = now_text,
    run_at = (head.run_at ~= '' and head.run_at) or head.created, asked = '',
  }
end
