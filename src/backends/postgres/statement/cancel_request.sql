-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text
UPDATE holdfast.job AS job SET cancel_requested = true
FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i)
WHERE job.state || '' = 'running'
--@include by_id
RETURNING input.i, 0 AS now
