-- Each record is looked up by its id, as in by_id: `+ 0` keeps the planner from an index that begins with the namespace.
AND archive.ns + 0 = $1 AND archive.id = ANY (ARRAY[input.id])
