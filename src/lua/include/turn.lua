--@include sound_claim
--@include grant
-- The claim of a turn and its answer: now_us, flags, next_due, ids, defs, runs before, terms, behind `first`.
-- Flags: p paused, d a deadline has passed (nothing was claimed), m more could run.
local function claim_and_answer(first, paused, removed)
  local flags, ids, given, before, settled_terms = '', {}, {}, {}, {}
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
    elseif limit ~= '0' then
      ids, given, before, settled_terms = grant(tonumber(limit), removed)
    end
  end
  -- Of a paused lane nothing is due: whoever waits for it would come back for nothing.
  if not paused and redis.call('EXISTS', fifo, ready) > 0 then flags = flags .. 'm' end
  local due = not paused and next_due()
  local next_text = due and string.format('%.0f', due) or ''
  return { first, string.format('%.0f', now_us), flags, next_text, ids, given, before, settled_terms }
end
