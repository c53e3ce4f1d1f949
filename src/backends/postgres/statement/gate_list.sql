SELECT lane, rate_limit, rate_per_ms, rate_debt, rate_at, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM holdfast.gate WHERE ns = $1 ORDER BY lane
