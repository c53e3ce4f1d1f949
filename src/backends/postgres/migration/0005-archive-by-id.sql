-- What is looked up by id has an index that nothing else could take the place of: where the planner believes a partition to be all but empty,
-- one that begins with the namespace looks as good, and would be read from end to end.
DROP INDEX holdfast.archive_id;
CREATE INDEX archive_id ON holdfast.archive (id);
