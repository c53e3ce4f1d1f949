--@include settle
-- The record of a running job ends in a fixed width: sequence 14, started 13, updated 13, run_at 13. One that does not is damaged and
-- cannot be completed: its lease runs out.
local DIGITS_13 = string.rep('%d', 13)
local TAIL = '^|%d' .. DIGITS_13 .. '|' .. DIGITS_13 .. ',' .. DIGITS_13 .. ',[%-%d]' .. string.rep('%d', 12) .. '$'

-- Completed jobs that are kept: `keep_ms keep_output_ms count`, then id, token, duration, and the output behind a `=` or nothing.
local function settle_kept()
  local keep_ms, keep_output_ms, count = ARGV[args_read + 1], ARGV[args_read + 2], tonumber(ARGV[args_read + 3])
  args_read = args_read + 3
  local ids = {}
  for index = 1, count do ids[index] = ARGV[args_read + index * 4 - 3] end
  local texts = read('HMGET', run, ids)
  local done, runs, kept, order, until_, until_output = {}, {}, {}, {}, {}, {}
  for index, id in ipairs(ids) do
    local at = args_read + index * 4
    local text, token, output = texts[index], ARGV[at - 2], ARGV[at]
    if text and is_held(text, token) and string.find(text, TAIL, -57) then
      verdicts[#verdicts + 1] = 'a'
      done[#done + 1] = id
      local pair = #done * 2
      local marks = string.byte(text, 1) == 88 and 'x' or ''
      if output == '=u' and keep_output_ms == '' then marks, output = marks .. 'u', '' end
      runs[pair - 1] = id
      runs[pair] = 'C' .. string.sub(text, 2, -28) .. now_text .. string.sub(text, -14) .. '|' .. marks .. ARGV[at - 1] .. '|'
      order[pair - 1], order[pair] = string.sub(text, -56, -43), id
      if output ~= '' then
        add(kept, id, string.sub(output, 2))
        if keep_output_ms ~= '' then add(until_output, string.format('%.0f', now + keep_output_ms), id) end
      end
      if keep_ms ~= '' then until_[pair - 1], until_[pair] = string.format('%.0f', now + keep_ms), id end
    else
      verdicts[#verdicts + 1] = missed(id, text, token, 'complete')
    end
  end
  args_read = args_read + count * 4
  for _, id in ipairs(done) do completed_leases[#completed_leases + 1] = id end
  write('HSET', run, runs)
  write('HSET', outputs, kept)
  write('ZADD', completed, order)
  write('ZADD', keep, until_)
  write('ZADD', keep_outputs, until_output)
end
