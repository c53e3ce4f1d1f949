SELECT lane, paused::integer, max_in_flight, rate_limit, rate_per_ms, rate_burst, rate_debt, rate_at, max_per_key, limited::integer,
  parked_after, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
FROM holdfast.lane WHERE ns = $1 ORDER BY lane
