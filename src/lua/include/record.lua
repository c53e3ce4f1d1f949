-- The two records of a job.
-- defs: `<created 13> <sequence 14> <priority> <deadline or nothing> <run_at or nothing>` on the first line, then what only clients read.
-- run:  `<state><token>|<attempts>|<crashes>|<sequence 14>|<started 13 or nothing>,<updated 13>,<run_at>`, absent until the first claim.
-- States of run: R running, X running and asked to cancel, Q queued, W waiting for a retry or queued after it,
-- C completed, K cancelled, D dead.
-- A terminal job was updated when it ended; behind its run stands `|<marks><duration or nothing>|<code or nothing>`. Marks: x its
-- cancellation was requested, u its output was nothing.
-- Both readers answer nil for what nobody here has written; lengths are checked so that every number is one for Redis too.
local function header_of(def)
  local created, sequence, priority, deadline, run_at =
    string.match(def, '^(%d+) (%d+) (%-?%d+) (%-?%d*) (%-?%d*)\n')
  if not created or #created ~= 13 or #sequence ~= 14 or #priority + #deadline + #run_at > 48 then return nil end
  if deadline == '-' or run_at == '-' then return nil end
  return { created = created, sequence = sequence, priority = priority, deadline = deadline, run_at = run_at }
end

local function run_of(text)
  local state, token, attempts, crashes, sequence, started, updated, run_at, ending =
    string.match(text, '^([RXQWCKD])([^|]*)|(%d+)|(%d+)|(%d+)|(%d*),(%d+),(%-?%d+)(.*)$')
  if not state or #sequence ~= 14 or #attempts > 9 or #crashes > 9 or #run_at > 16 then return nil end
  if ending ~= '' and string.byte(ending) ~= 124 then return nil end
  return {
    state = state, token = token, attempts = tonumber(attempts), crashes = crashes, sequence = sequence,
    started = started, updated = updated, run_at = run_at, asked = state == 'X' and 'x' or '',
  }
end

local function run_text(run)
  return run.state .. run.token .. '|' .. run.attempts .. '|' .. run.crashes .. '|' .. run.sequence .. '|'
    .. run.started .. ',' .. run.updated .. ',' .. run.run_at
end

-- What becomes of a token that must not be recognised any more: the epoch stays, so that the next one is higher.
local function wiped(token)
  return string.match(token, '^%d+:[^:]*') or ''
end
