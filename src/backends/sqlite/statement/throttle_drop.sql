DELETE FROM holdfast_throttle WHERE ns = :ns AND lane = :lane
