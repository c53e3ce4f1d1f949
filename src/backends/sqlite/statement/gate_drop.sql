DELETE FROM holdfast_gate WHERE ns = :ns AND lane = :lane
