-- Hot: bound by position. No RETURNING, which would double the cost.
DELETE FROM holdfast_job WHERE ns = ? AND id = ? AND state = ? AND token IS ? AND recorded <= ?
