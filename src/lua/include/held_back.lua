--@include bucket
local function bucket_text(debt)
  return string.format('%.0f', debt) .. ' ' .. now_text
end

-- Counts what a limit held back: `held_<letter>` in meta is `<count> <first> <last>`.
local function count_held(letter, count)
  local before, first = string.match(redis.call('HGET', meta, 'held_' .. letter) or '', '^(%d+) (%d+) %d+$')
  redis.call('HSET', meta, 'held_' .. letter, string.format('%.0f', (before or 0) + count) .. ' ' .. (first or now_text) .. ' ' .. now_text)
end
