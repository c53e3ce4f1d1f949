--! keys: workers beats
--! args: forget_ms ...2
--! flags: allow-oom
--! returns: how many workers are known
-- Notes workers as heard of now, and forgets a bounded number of those not heard of for long; with nobody left all goes by itself.
--@include now
redis.call('HLEN', workers)
redis.call('ZCARD', beats)
local function forget(from, to)
  local old = redis.call('ZRANGEBYSCORE', beats, from, to, 'LIMIT', 0, 100)
  if #old == 0 then return end
  redis.call('HDEL', workers, unpack(old))
  redis.call('ZREM', beats, unpack(old))
end
forget('-inf', string.format('(%.0f', now - forget_ms))
-- The clock was set back: whoever is there beats again soon.
forget(string.format('(%.0f', now + forget_ms), '+inf')
for at = args_read + 1, #ARGV, 2 do
  redis.call('HSET', workers, ARGV[at], ARGV[at + 1])
  redis.call('ZADD', beats, string.format('%.0f', now), ARGV[at])
end
local gone_ms = string.format('%.0f', 2 * forget_ms)
redis.call('PEXPIRE', workers, gone_ms)
redis.call('PEXPIRE', beats, gone_ms)
return redis.call('ZCARD', beats)
