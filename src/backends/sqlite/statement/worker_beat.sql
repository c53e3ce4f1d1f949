DELETE FROM holdfast_worker WHERE ns = :ns AND abs(:now - beat_at) > :forget_ms;

INSERT INTO holdfast_worker (ns, id, beat_at, info) VALUES (:ns, :id, :now, :info)
ON CONFLICT (ns, id) DO UPDATE SET beat_at = excluded.beat_at, info = excluded.info
