-- What is kept of live jobs beside their rows goes when they end. Found as in by_seq.
past AS (
  DELETE FROM holdfast.attempt AS attempt USING ended WHERE ended.recorded AND attempt.job_seq = ANY (ARRAY[ended.seq])
),
said AS (
  DELETE FROM holdfast.job_log AS log USING ended WHERE ended.recorded AND log.job_seq = ANY (ARRAY[ended.seq])
)
