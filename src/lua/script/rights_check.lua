--! keys: meta
--! args: ...
--! flags: no-writes
--! returns: of the commands named, those that this user may not send with this key
-- Asks the server without sending any of them.
local missing = {}
redis.call('EXISTS', meta)
for at = 1, #ARGV do
  if not redis.acl_check_cmd(ARGV[at], meta) then missing[#missing + 1] = ARGV[at] end
end
return missing
