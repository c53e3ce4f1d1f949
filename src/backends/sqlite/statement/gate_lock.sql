SELECT lane, rate_limit, rate_per_ms, rate_debt, rate_at, :now AS now FROM holdfast_gate WHERE ns = :ns AND lane = :lane
