INSERT INTO holdfast_throttle (ns, lane, reason, count, first_at, last_at) VALUES (:ns, :lane, :reason, :count, :now, :now)
ON CONFLICT (ns, lane, reason) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at
