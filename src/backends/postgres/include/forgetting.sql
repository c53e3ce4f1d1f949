-- Those that are gone from the archive count no more, and their keys are free.
counted AS (
  INSERT INTO holdfast.counter (ns, lane, state, jobs) SELECT ns, lane, state, -count(*) FROM gone GROUP BY 1, 2, 3
),
unkeyed AS (
  DELETE FROM holdfast.key AS key USING gone
  WHERE key.ns = ANY (ARRAY[gone.ns]) AND key.lane = gone.lane AND key.key = gone.idempotency_key AND key.id = gone.id
)
SELECT 1 FROM gone
