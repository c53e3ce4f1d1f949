INSERT INTO holdfast_lane (
  ns, lane, paused, max_in_flight, rate_limit, rate_per_ms, rate_burst, rate_debt, rate_at, max_per_key, limited
) VALUES (
  :ns, :lane, :paused, :max_in_flight, :rate_limit, :rate_per_ms, :rate_burst, :rate_debt, :rate_at, :max_per_key, :limited
)
ON CONFLICT (ns, lane) DO UPDATE SET
  paused = excluded.paused, max_in_flight = excluded.max_in_flight, rate_limit = excluded.rate_limit,
  rate_per_ms = excluded.rate_per_ms, rate_burst = excluded.rate_burst, rate_debt = excluded.rate_debt,
  rate_at = excluded.rate_at, max_per_key = excluded.max_per_key, limited = excluded.limited
