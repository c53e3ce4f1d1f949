-- What is looked up by id has an index that nothing else could take the place of: where the planner believes a partition to be all but empty,
-- one that begins with the namespace looks as good, and would be read from end to end. The new one first: while it is made the archive can be read.
CREATE INDEX archive_by_id ON holdfast.archive (id);
DROP INDEX holdfast.archive_id;
