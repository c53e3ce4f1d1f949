SELECT lane, paused FROM holdfast_lane WHERE ns = :ns ORDER BY lane
