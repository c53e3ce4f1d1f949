--! keys: wake
--! args: limit
--! flags: allow-oom
--! returns: how many tokens wait
-- Leaves a wake-up by itself, where no script that stores jobs could.
--@include wake
return wake_one(tonumber(limit))
