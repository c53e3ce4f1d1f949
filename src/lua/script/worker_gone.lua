--! keys: workers beats
--! args: ...
--! flags: allow-oom
--! returns: how many workers are known
-- Takes out workers that have left.
redis.call('HLEN', workers)
redis.call('ZCARD', beats)
for at = 1, #ARGV do
  redis.call('HDEL', workers, ARGV[at])
  redis.call('ZREM', beats, ARGV[at])
end
return redis.call('ZCARD', beats)
