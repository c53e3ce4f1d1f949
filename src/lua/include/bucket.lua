-- Token buckets, as `limits.ts` reckons with them: `<debt> <time>`, the debt in tokens times per ms, so that all is whole numbers.
local function bucket_of(text)
  local debt, at = string.match(text or '0 0', '^(%d+) (%d+)$')
  if not debt or #debt > 16 or #at > 16 then error({ err = 'HOLDFAST_DAMAGED a bucket of the lane' }) end
  return tonumber(debt), tonumber(at)
end

-- What is owed at this time. Time that went back fills nothing.
local function owed(rate_limit, text)
  local debt, at = bucket_of(text)
  return math.max(0, debt - math.max(0, now - at) * rate_limit)
end

local function tokens_of(rate, debt)
  return math.max(0, math.floor((rate.burst * rate.per - debt) / rate.per))
end

local function wait_of(rate, debt)
  return math.max(0, math.ceil((debt + rate.per - rate.burst * rate.per) / rate.limit))
end
