-- Whether a token is the one that holds a job: compared whole, and only while the job runs (R) or runs and is asked to cancel (X).
local function has_token(text, token)
  return string.find(text, token, 2, true) == 2 and string.byte(text, 2 + #token) == 124
end

local function is_held(text, token)
  local state = string.byte(text, 1)
  return (state == 82 or state == 88) and has_token(text, token)
end
