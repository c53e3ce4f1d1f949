DELETE FROM holdfast_attempt WHERE job_seq IN (
  SELECT seq FROM (
    SELECT seq, recorded FROM holdfast_archive INDEXED BY holdfast_archive_keep
    WHERE ns = :ns AND keep_until <= :now ORDER BY keep_until LIMIT :limit
  )
  WHERE recorded = 1
);

DELETE FROM holdfast_job_log WHERE job_seq IN (
  SELECT seq FROM (
    SELECT seq, recorded FROM holdfast_archive INDEXED BY holdfast_archive_keep
    WHERE ns = :ns AND keep_until <= :now ORDER BY keep_until LIMIT :limit
  )
  WHERE recorded = 1
);

DELETE FROM holdfast_archive WHERE seq IN (
  SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_keep
  WHERE ns = :ns AND keep_until <= :now ORDER BY keep_until LIMIT :limit
)
