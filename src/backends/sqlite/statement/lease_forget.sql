-- After a reaped lease its token proves nothing any more.
UPDATE holdfast_job SET token = NULL WHERE ns = :ns AND id = :id AND token = :token AND state <> 'running'
