--@include batch
--@include held
-- What running jobs say of themselves: for each id, token, progress behind the letter of its kind or nothing, how many lines to keep,
-- how many follow, and these. A line is `<lease epoch> <number> <JSON>`.
-- logs: `<lease epoch> <number> <count>` of the last line and of all on the first line, then the lines.

-- How many arguments the notes at `args_read` have.
local function note_arguments(count)
  local at = args_read
  for _ = 1, count do
    local lines = tonumber(ARGV[at + 5])
    if not lines or not tonumber(ARGV[at + 4]) then error({ err = 'HOLDFAST_ARGUMENTS a note' }) end
    at = at + 5 + lines
  end
  return at - args_read
end

-- Lines that came before are known by their numbers.
local function fresh_lines(from, count, epoch, last)
  local fresh, tail = {}, nil
  for index = from, from + count - 1 do
    local line_epoch, number = string.match(ARGV[index], '^(%d+) (%d+) ')
    if line_epoch and not (line_epoch == epoch and tonumber(number) <= last) then
      fresh[#fresh + 1] = ARGV[index]
      tail = line_epoch .. ' ' .. number
    end
  end
  return fresh, tail
end

-- The column with the lines at `from` added and the oldest beyond `kept` left out; nothing when there is nothing new.
local function with_lines(stored, from, count, kept)
  local epoch, last, held, body = '', 0, 0, ''
  if stored then
    local first, number, lines, stop = string.match(stored, '^(%d+) (%d+) (%d+)\n()')
    if first then epoch, last, held, body = first, tonumber(number), tonumber(lines), string.sub(stored, stop) end
  end
  local fresh, tail = fresh_lines(from, count, epoch, last)
  if not tail then return nil end
  local surplus, start = held + #fresh - kept, 1
  if surplus >= held then
    body = ''
    for _ = 1, surplus - held do table.remove(fresh, 1) end
    held = 0
  else
    for _ = 1, surplus do start = string.find(body, '\n', start, true) + 1 end
    held = held - math.max(0, surplus)
  end
  fresh[#fresh + 1] = ''
  return tail .. ' ' .. (held + #fresh - 1) .. '\n' .. string.sub(body, start) .. table.concat(fresh, '\n')
end

-- Stores what comes from those who hold the jobs; answers a letter for each: a applied, l lease lost, g gone.
local function take_notes(count)
  local letters, progressed = {}, {}
  for index = 1, count do
    local id, token, value, kept, lines = unpack(ARGV, args_read + 1, args_read + 5)
    local first = args_read + 6
    args_read = first + lines - 1
    local text = redis.call('HGET', run, id)
    if text and is_held(text, token) then
      letters[index] = 'a'
      if value ~= '' then add(progressed, id, value) end
      local log = lines ~= '0' and with_lines(redis.call('HGET', logs, id), first, tonumber(lines), tonumber(kept))
      if log then redis.call('HSET', logs, id, log) end
    else
      letters[index] = (text or redis.call('HEXISTS', defs, id) == 1) and 'l' or 'g'
    end
  end
  write('HSET', progress, progressed)
  return table.concat(letters)
end
