-- One enqueue after the other, until the transaction ends. The time is read when the lock is held.
--! rows: lane text
SELECT lane, rate_limit, rate_per_ms, rate_debt, rate_at, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
FROM (
  SELECT * FROM holdfast.gate WHERE ns = $1 AND lane = ANY ($2::text[]) ORDER BY lane FOR NO KEY UPDATE
) AS held
