INSERT INTO holdfast_lane (ns, lane, paused) VALUES (:ns, :lane, 1) ON CONFLICT DO NOTHING
