-- As in by_id: each by its primary key, and by no index that begins with the namespace.
AND job.seq = ANY (ARRAY[input.seq]) AND job.ns + 0 = $1
