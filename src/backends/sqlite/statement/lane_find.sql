SELECT paused, limited FROM holdfast_lane WHERE ns = :ns AND lane = :lane
