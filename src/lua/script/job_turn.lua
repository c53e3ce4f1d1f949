--! keys: meta defs run fifo ready scheduled retrying aside leases deadlines idempotency keyed failures terms history outputs progress logs completed cancelled dlq keep keep_outputs concurrency parked
--! args: limit worker nonce lease_ms ordinal notes forgotten kept others ...
--! flags: allow-oom
--! returns: verdicts, now_us, flags, next_due, ids, defs, runs before, terms. Flags: p paused, d a deadline has passed (nothing was claimed), m more could run, w somebody waits for ends.
-- Takes the last notes of what has ended, settles it, then claims up to `limit` (-1: no claim).
--@include now
--@include batch
--@include note
--@include settle_kept
--@include settle_other
--@include sound
--@include turn
local noted = notes ~= '0' and note_arguments(tonumber(notes)) or 0
local expected = args_read + noted + forgotten * 2
for _ = 1, tonumber(kept) do expected = expected + 3 + 4 * ARGV[expected + 3] end
if #ARGV ~= expected + others * 10 then return redis.error_reply('HOLDFAST_ARGUMENTS job_turn') end
local first_argument = args_read
args_read = expected
local asked = read_others(tonumber(others))
args_read = first_argument
local paused, removed, limits, waited = check_keys()
if limits then limited_claims(limits) end
if noted > 0 then take_notes(tonumber(notes)) end
settle_forgotten(tonumber(forgotten))
for _ = 1, tonumber(kept) do settle_kept() end
for _, each in ipairs(asked) do verdicts[#verdicts + 1] = settle_other(each, false) end

-- What was put back may wait anywhere.
if #asked > 0 then has_later, has_ready = true, true end
local answer = claim_and_answer(table.concat(verdicts), paused, removed, limits)
write('ZREM', leases, completed_leases)
if waited > now then answer[3] = answer[3] .. 'w' end
return answer
