--! rows: lane text, rate_limit bigint, rate_per_ms bigint, rate_debt bigint, rate_at bigint
INSERT INTO holdfast.gate (ns, lane, rate_limit, rate_per_ms, rate_debt, rate_at)
SELECT $1, lane, rate_limit, rate_per_ms, rate_debt, rate_at
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
  AS input (lane, rate_limit, rate_per_ms, rate_debt, rate_at)
ORDER BY lane
ON CONFLICT (ns, lane) DO UPDATE SET
  rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, rate_debt = excluded.rate_debt,
  rate_at = excluded.rate_at
