-- Progress, and room for the lines that follow. A number that is stored already is not counted twice.
-- Found by id: `|| ''` keeps the planner from an index by which it would read all jobs in that state for each row.
--! rows: id text, token text, progress value, has_lines integer, first_number integer, room integer
WITH noted AS (
  UPDATE holdfast.job AS job SET
    progress = CASE
      WHEN input.progress IS NULL THEN job.progress WHEN left(input.progress, 2) <> E'\\x' THEN input.progress::json
    END,
    progress_bytes = CASE
      WHEN input.progress IS NULL THEN job.progress_bytes
      WHEN left(input.progress, 2) = E'\\x' THEN decode(substr(input.progress, 3), 'hex')
    END,
    recorded = job.recorded OR input.has_lines <> 0
  FROM unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::integer[], $7::integer[]) WITH ORDINALITY
    AS input (id, token, progress, has_lines, first_number, room, i)
  WHERE job.state || '' = 'running' AND job.token = input.token
--@include by_id
  RETURNING job.seq, job.lease_epoch, input.has_lines, input.first_number, input.room, input.i
),
trimmed AS (
  DELETE FROM holdfast.job_log AS log
  USING noted CROSS JOIN LATERAL (
    SELECT old.lease_epoch, old.number FROM holdfast.job_log AS old
    WHERE old.job_seq = noted.seq AND NOT (old.lease_epoch = noted.lease_epoch AND old.number >= noted.first_number)
    ORDER BY old.lease_epoch DESC, old.number DESC LIMIT 1 OFFSET noted.room
  ) AS over
  WHERE noted.has_lines <> 0 AND log.job_seq = ANY (ARRAY[noted.seq])
    AND (log.lease_epoch, log.number) <= (over.lease_epoch, over.number)
)
SELECT i, 0 AS now FROM noted
