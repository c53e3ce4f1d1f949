-- Reads settlements of the last section from the arguments: kind, id, token, keep_ms, duration, outcome, crashes, failure, terms, extra.
-- extra: delay_ms of a retry, code of a dead letter. outcome: how the attempt is recorded, empty when it is not.
-- One that cannot be is refused before anything is written.
local KINDS = { retry = true, dead = true, cancel = true, release = true, requeue = true }

local function read_others(count)
  local asked = {}
  for at = args_read, args_read + 10 * (count - 1), 10 do
    local s = {
      kind = ARGV[at + 1], id = ARGV[at + 2], token = ARGV[at + 3], keep_ms = ARGV[at + 4], duration = ARGV[at + 5],
      outcome = ARGV[at + 6], crashes = ARGV[at + 7], failure = ARGV[at + 8], terms = ARGV[at + 9], extra = ARGV[at + 10],
    }
    local is_number = s.kind ~= 'retry' or tonumber(s.extra)
    if not (KINDS[s.kind] and is_number and (s.keep_ms == '' or tonumber(s.keep_ms))) then
      error({ err = 'HOLDFAST_ARGUMENTS a settlement' })
    end
    asked[#asked + 1] = s
  end
  args_read = args_read + 10 * count
  return asked
end
