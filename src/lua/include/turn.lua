--@include sound_claim
--@include grant
--@include limited
-- The claim of a turn and its answer: now_us, flags, next_due, ids, defs, runs before, terms, behind `first`.
-- Flags: p paused, d a deadline has passed (nothing was claimed), m more could run, l the lane has limits. Behind the terms: what held
-- a limited claim back, see `held_back`.
local function claim_and_answer(first, paused, removed, limits_text)
  local flags, ids, given, before, settled_terms, held = '', {}, {}, {}, {}, ''
  local grant_limited, more = limits_text and not paused and limited_claims(limits_text), nil
  if paused then
    flags = 'p'
  elseif limit ~= '-1' then
    local due = next_due()
    if due and due <= now then
      promote_due(scheduled, MOVED_MAX)
      promote_due(retrying, MOVED_MAX)
      has_ready = true
    end
    local deadline = has_later and first_score(deadlines)
    if deadline and deadline <= now then
      flags = 'd'
    elseif grant_limited then
      ids, given, before, settled_terms, more, held = grant_limited(tonumber(limit), removed)
    elseif limit ~= '0' then
      ids, given, before, settled_terms = grant(grantable(tonumber(limit), removed), removed)
    end
  end
  -- Of a paused lane nothing is due: whoever waits for it would come back for nothing.
  if grant_limited then
    if more == nil then more = redis.call('EXISTS', fifo, ready, parked) > 0 end
    flags = flags .. (more and 'lm' or 'l')
  elseif not paused and redis.call('EXISTS', fifo, ready) > 0 then
    flags = flags .. 'm'
  end
  local due = not paused and next_due()
  local next_text = due and string.format('%.0f', due) or ''
  return { first, string.format('%.0f', now_us), flags, next_text, ids, given, before, settled_terms, held ~= '' and held or nil }
end
