SELECT lane, paused::integer FROM holdfast.lane WHERE ns = $1 ORDER BY lane
