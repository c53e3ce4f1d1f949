DELETE FROM holdfast_attempt WHERE job_seq IN (
  SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_lane
  WHERE ns = :ns AND lane = :lane AND state = :state AND seq <= (
    SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_lane
    WHERE ns = :ns AND lane = :lane AND state = :state ORDER BY seq DESC LIMIT 1 OFFSET :count
  )
  ORDER BY seq LIMIT :limit
);

DELETE FROM holdfast_job_log WHERE job_seq IN (
  SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_lane
  WHERE ns = :ns AND lane = :lane AND state = :state AND seq <= (
    SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_lane
    WHERE ns = :ns AND lane = :lane AND state = :state ORDER BY seq DESC LIMIT 1 OFFSET :count
  )
  ORDER BY seq LIMIT :limit
);

DELETE FROM holdfast_archive WHERE seq IN (
  SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_lane
  WHERE ns = :ns AND lane = :lane AND state = :state AND seq <= (
    SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_lane
    WHERE ns = :ns AND lane = :lane AND state = :state ORDER BY seq DESC LIMIT 1 OFFSET :count
  )
  ORDER BY seq LIMIT :limit
)
