UPDATE holdfast_lane SET rate_debt = :rate_debt, rate_at = :rate_at, parked_after = :parked_after
WHERE ns = :ns AND lane = :lane
