--! rows: lane text, paused integer, max_in_flight bigint, rate_limit bigint, rate_per_ms bigint, rate_burst bigint, rate_debt bigint, rate_at bigint, max_per_key bigint, limited integer
INSERT INTO holdfast.lane (
  ns, lane, paused, max_in_flight, rate_limit, rate_per_ms, rate_burst, rate_debt, rate_at, max_per_key, limited
)
SELECT $1, lane, paused <> 0, max_in_flight, rate_limit, rate_per_ms, rate_burst, rate_debt, rate_at, max_per_key, limited <> 0
FROM unnest(
  $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
  $10::bigint[], $11::integer[]
) AS input (lane, paused, max_in_flight, rate_limit, rate_per_ms, rate_burst, rate_debt, rate_at, max_per_key, limited)
ORDER BY lane
ON CONFLICT (ns, lane) DO UPDATE SET
  paused = excluded.paused, max_in_flight = excluded.max_in_flight, rate_limit = excluded.rate_limit,
  rate_per_ms = excluded.rate_per_ms, rate_burst = excluded.rate_burst, rate_debt = excluded.rate_debt,
  rate_at = excluded.rate_at, max_per_key = excluded.max_per_key, limited = excluded.limited
