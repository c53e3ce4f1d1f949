INSERT INTO holdfast_gate (ns, lane, rate_limit, rate_per_ms, rate_debt, rate_at)
VALUES (:ns, :lane, :rate_limit, :rate_per_ms, :rate_debt, :rate_at)
ON CONFLICT (ns, lane) DO UPDATE SET
  rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, rate_debt = excluded.rate_debt,
  rate_at = excluded.rate_at
