--! keys: defs run progress logs
--! args: notes ...
--! flags: allow-oom
--! returns: one letter a note: a applied, l lease lost, g gone
-- Stores how far running jobs are, and what they log.
--@include note
if #ARGV ~= args_read + note_arguments(tonumber(notes)) then return redis.error_reply('HOLDFAST_ARGUMENTS job_note') end
redis.call('HLEN', defs)
redis.call('HLEN', run)
redis.call('HLEN', progress)
redis.call('HLEN', logs)
return take_notes(tonumber(notes))
