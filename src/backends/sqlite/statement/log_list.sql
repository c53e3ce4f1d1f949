SELECT :id AS id, lease_epoch, number, line FROM holdfast_job_log
WHERE job_seq = coalesce(
    (SELECT seq FROM holdfast_job WHERE ns = :ns AND id = :id),
    (SELECT seq FROM holdfast_archive WHERE ns = :ns AND id = :id)
  )
  AND (lease_epoch, number) > (:lease_epoch, :number)
ORDER BY lease_epoch, number LIMIT :limit
