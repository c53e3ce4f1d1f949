--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress completed cancelled dlq keep keep_outputs
--! args: limit worker nonce lease_ms ordinal forgotten kept others ...
--! flags: allow-oom
--! returns: verdicts, now_us, flags, next_due, ids, defs, runs before, terms. Flags: p paused, d a deadline has passed (nothing was claimed), m more could run.
-- Settles what has ended, then claims up to `limit` (-1: no claim).
--@include now
--@include batch
--@include settle_kept
--@include settle_other
--@include grant
--@include sound
local expected = args_read + forgotten * 2
for _ = 1, tonumber(kept) do expected = expected + 3 + 4 * ARGV[expected + 3] end
if #ARGV ~= expected + others * 10 then return redis.error_reply('HOLDFAST_ARGUMENTS job_turn') end
local first_argument = args_read
args_read = expected
local asked = read_others(tonumber(others))
args_read = first_argument
local paused, removed = check_keys()
settle_forgotten(tonumber(forgotten))
for _ = 1, tonumber(kept) do settle_kept() end
for _, each in ipairs(asked) do verdicts[#verdicts + 1] = settle_other(each, false) end

local flags, ids, given, before, settled_terms = '', {}, {}, {}, {}
if paused then
  flags = 'p'
elseif limit ~= '-1' then
  local due = next_due()
  if due and due <= now then
    promote_due(scheduled, MOVED_MAX)
    promote_due(retrying, MOVED_MAX)
  end
  local deadline = first_score(deadlines)
  if deadline and deadline <= now then
    flags = 'd'
  elseif limit ~= '0' then
    ids, given, before, settled_terms = grant(tonumber(limit), removed)
  end
end
write('ZREM', leases, completed_leases)
-- Of a paused lane nothing is due: whoever waits for it would come back for nothing.
if flags ~= 'p' and redis.call('EXISTS', fifo, ready) > 0 then flags = flags .. 'm' end
local due = flags ~= 'p' and next_due()
return {
  table.concat(verdicts), string.format('%.0f', now_us), flags, due and string.format('%.0f', due) or '',
  ids, given, before, settled_terms,
}
