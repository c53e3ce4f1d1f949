-- What is said of new jobs, see job_enqueue. A spec that cannot be, and keys of another type, fail before anything is written.
local SPEC = '^(%-?%d+) (%-?%d*) (%d*) (%-?%d*) (.*)$'
-- Sequences have 14 digits.
local SEQUENCE_MAX = 99999999999999

-- By place: nothing for a job that goes to the end of fifo like all others. Also who owns the keys that are named.
local function read_specs(count, is_plain)
  local specs, owners = {}, {}
  for index = 1, count do
    local spec = ARGV[index * 3 - 1]
    if spec ~= '' or not is_plain then
      local shared, rest = '', spec
      local bytes, from = string.match(spec, '^@(%d+) ()')
      if bytes then shared, rest = string.sub(spec, from, from + bytes - 1), string.sub(spec, from + bytes + 1) end
      local priority, run_at, delay, deadline, name = string.match(rest == '' and '0    ' or rest, SPEC)
      if not priority or deadline == '-' or run_at == '-' then error({ err = 'HOLDFAST_ARGUMENTS job_enqueue' }) end
      specs[index] = { priority = priority, run_at = run_at, delay = delay, deadline = deadline, name = name, shared = shared }
      if name ~= '' and owners[name] == nil then owners[name] = redis.call('HGET', idempotency, name) end
    end
  end
  if next(specs) then
    for _, set in ipairs({ ready, scheduled, aside, deadlines }) do redis.call('ZCARD', set) end
    redis.call('HLEN', keyed)
    redis.call('HLEN', concurrency)
  end
  return specs, owners
end
