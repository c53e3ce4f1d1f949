-- Who works on the store, by the last beat of each. Nothing that a job needs is here.
CREATE TABLE holdfast_worker (
  ns INTEGER NOT NULL,
  id TEXT NOT NULL,
  beat_at INTEGER NOT NULL,
  info TEXT NOT NULL,
  PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
