--! keys: meta
--! args: wait_ms
--! returns: 1
-- Says that somebody waits for jobs of the lane to end, for so long: only then do turns tell of ends.
--@include now
redis.call('HSET', meta, 'waited', string.format('%.0f', now + wait_ms))
return 1
