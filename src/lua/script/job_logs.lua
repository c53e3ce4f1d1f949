--! keys: logs
--! args: ...
--! flags: no-writes
--! returns: for each id its log as it is stored, or nothing
-- Reads what jobs have logged.
--@include batch
return read('HMGET', logs, ARGV)
