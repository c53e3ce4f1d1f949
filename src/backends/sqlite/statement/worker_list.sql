SELECT id, info, beat_at, now FROM (SELECT :now AS now) LEFT JOIN (
  SELECT id, info, beat_at FROM holdfast_worker WHERE ns = :ns AND beat_at >= :now - :forget_ms
  ORDER BY beat_at DESC LIMIT :limit
) ON true
