SELECT lane, paused, max_in_flight, rate_limit, rate_per_ms, rate_burst, rate_debt, rate_at, max_per_key, limited, parked_after,
  :now AS now
FROM holdfast_lane WHERE ns = :ns ORDER BY lane
