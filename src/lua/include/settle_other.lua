--@include settle
--@include waiting
--@include others
-- Every other way an attempt ends, one by one.
local APPLY = {}

function APPLY.release(s, job, head)
  if s.outcome ~= '' then add_attempt(s.id, job, 'released', s.duration, '') end
  job.attempts = job.attempts - 1
  job.state = 'Q'
  place_ready(s.id, head, job.run_at)
end

function APPLY.requeue(s, job, head)
  add_attempt(s.id, job, s.outcome, '', s.failure)
  redis.call('HSET', failures, s.id, s.failure)
  job.crashes, job.state = s.crashes, 'Q'
  place_ready(s.id, head, job.run_at)
end

function APPLY.retry(s, job, head)
  add_attempt(s.id, job, s.outcome, s.duration, s.failure)
  redis.call('HSET', failures, s.id, s.failure)
  redis.call('HSET', terms, s.id, s.terms)
  job.crashes, job.state, job.run_at = s.crashes, 'W', string.format('%.0f', now + s.extra)
  place_later(retrying, s.id, head, job.run_at)
end

-- `crashes` is empty for a job that is dead because its definition is damaged.
function APPLY.dead(s, job)
  add_attempt(s.id, job, s.outcome, s.duration, s.failure)
  redis.call('HSET', failures, s.id, s.failure)
  if s.crashes ~= '' then job.crashes = s.crashes end
  job.state = 'D'
end

function APPLY.cancel(s, job)
  add_attempt(s.id, job, 'cancelled', s.duration, s.failure)
  redis.call('HSET', failures, s.id, s.failure)
  job.state = 'K'
end

-- `is_reaped`: only if the lease has run out, and the token is not to be recognised afterwards.
local function settle_other(s, is_reaped)
  local text = redis.call('HGET', run, s.id)
  if not text or not is_held(text, s.token) then
    local verdict = missed(s.id, text, s.token, s.kind)
    return (is_reaped and verdict == 's') and 'l' or verdict
  end
  local def = redis.call('HGET', defs, s.id)
  if not def then return 'g' end
  if is_reaped and tonumber(redis.call('ZSCORE', leases, s.id) or 0) > now then return 'l' end
  local job, head, kind, verdict = run_of(text), header_of(def), s.kind, 'a'
  if not job then return 'l' end
  if job.state == 'X' and (kind == 'retry' or kind == 'release' or kind == 'requeue') then kind, verdict = 'cancel', 'c' end
  -- What cannot be read cannot wait anywhere either.
  if not head and kind ~= 'cancel' then kind, s.extra = 'dead', 'STORE_CORRUPT' end
  redis.call('ZREM', leases, s.id)
  APPLY[kind](s, job, head)
  if is_reaped then job.token = wiped(job.token) end
  if kind == 'dead' then finish(s.id, job, { set = dlq, state = 'D', keep_ms = s.keep_ms, code = s.extra })
  elseif kind == 'cancel' then finish(s.id, job, { set = cancelled, state = 'K', keep_ms = s.keep_ms, code = '' })
  else
    job.updated = now_text
    redis.call('HSET', run, s.id, run_text(job))
  end
  return verdict
end
