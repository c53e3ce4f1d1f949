--@include parked_member
-- What `grant_limited` passed over, and what it takes from there.
local function move_aside(found)
  local members, beside = {}, {}
  for _, each in ipairs(found.parks) do
    add(members, 0, each.digest .. each.order)
    if each.is_fresh then add(beside, string.sub(each.order, 24, 37), string.sub(each.order, 38)) end
  end
  write('ZADD', parked, members)
  write('ZADD', aside, beside)
  write('ZREM', parked, found.unparked)
end
