-- Hot: a job that ends without a trace, unless attempts are on record. No RETURNING, which would double the cost.
--! bind: ns, id, from, token
DELETE FROM holdfast_job WHERE ns = ? AND id = ? AND state = ? AND token IS ? AND recorded = 0
