-- The server's clock, read once: its value moves while a script runs.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- 13 digits until the year 2286, so that texts sort as times do.
local now_text = string.format('%013.0f', now)
