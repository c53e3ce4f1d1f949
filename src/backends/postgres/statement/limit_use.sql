--! rows: lane text, rate_debt bigint, rate_at bigint, parked_after text
UPDATE holdfast.lane AS lane SET
  rate_debt = input.rate_debt, rate_at = input.rate_at, parked_after = input.parked_after
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[])
  AS input (lane, rate_debt, rate_at, parked_after)
WHERE lane.ns = $1 AND lane.lane = input.lane
