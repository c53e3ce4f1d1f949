-- What is kept of live jobs beside their rows goes when they end.
past AS (
  DELETE FROM holdfast.attempt AS attempt USING ended WHERE ended.recorded AND attempt.job_seq = ended.seq
),
said AS (
  DELETE FROM holdfast.job_log AS log USING ended WHERE ended.recorded AND log.job_seq = ended.seq
)
