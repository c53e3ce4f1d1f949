-- By the counters, which are few.
SELECT lane FROM holdfast.counter WHERE ns = $1 GROUP BY lane HAVING sum(jobs) > 0 ORDER BY lane
