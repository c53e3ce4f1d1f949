-- Each job is looked up by its id, whatever the planner believes of the table: after a vacuum that left next to nothing in many pages it takes
-- an index for one page, and would read all of it in place of one entry. As `= ANY (ARRAY[…])` neither part can be had without a row of
-- the input, nor makes an order worth reading all in, and no other whole index begins with the namespace.
AND job.ns = ANY (ARRAY[$1 + 0 * input.i::integer]) AND job.id = input.id
