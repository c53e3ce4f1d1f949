-- Each job is looked up by its id, whatever the planner believes of the table: after a vacuum that left next to nothing in many pages it takes
-- an index for one page, and would read all of it in place of one entry. A namespace that comes from a row of the input cannot be had without
-- one, and `= ANY (ARRAY[…])` makes no order worth reading all in; no other whole index begins with the namespace.
AND job.ns = ANY (ARRAY[$1 + 0 * input.i::integer]) AND job.id = input.id
