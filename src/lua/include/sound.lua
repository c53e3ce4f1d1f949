--@include sound_claim
-- Looks at every key of a lane before anything is written. Keys that are not there, as most of them usually are, cost one command together.
local ENDED_HASHES = { idempotency, keyed, failures, terms, history, outputs, progress, logs, concurrency }
local ENDED_SETS = { completed, cancelled, dlq, keep, keep_outputs, parked }

local function check_each(command, keys)
  if redis.call('EXISTS', unpack(keys)) == 0 then return end
  for _, key in ipairs(keys) do redis.call(command, key) end
end

local function check_keys()
  redis.call('HLEN', defs)
  redis.call('LLEN', fifo)
  check_each('HLEN', ENDED_HASHES)
  check_each('ZCARD', ENDED_SETS)
  return check_claim_keys()
end
