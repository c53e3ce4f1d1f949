SELECT reason, count, first_at, last_at FROM holdfast_throttle WHERE ns = :ns AND lane = :lane ORDER BY reason
