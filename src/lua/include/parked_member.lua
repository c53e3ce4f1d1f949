-- Jobs that were set aside since their key is at its limit: members of `parked` in the order of texts, `<digest of the key 40><inverse of the
-- priority 10><entry>`, so that the first of a key, and the next key, are one look-up. They are in `aside` as all that is not in fifo.
local PRIORITY_MAX = 2147483647

local function rank_of(score)
  return string.format('%010.0f', PRIORITY_MAX + score)
end

local function parked_member(key, priority, entry)
  return redis.sha1hex(key) .. rank_of(-priority) .. entry
end
