-- A lane that counts what it accepts has its sequence this much higher: so whoever stores a job sees it in the number that it needs anyway,
-- and a lane that does not count costs nothing.
local GATED = 1000000000000000
