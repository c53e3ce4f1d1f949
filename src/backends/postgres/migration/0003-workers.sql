-- Who works on the store, by the last beat of each. Nothing that a job needs is here, so nothing of it is written to the log:
-- beats cost no flush, and after a crash of the server each worker is known again within seconds. Room in each page keeps
-- the versions of a row where they are, so that they are swept without a vacuum.
CREATE UNLOGGED TABLE holdfast.worker (
  ns integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  beat_at bigint NOT NULL,
  info json NOT NULL,
  PRIMARY KEY (ns, id)
) WITH (fillfactor = 50);
