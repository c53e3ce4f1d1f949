--! args: id text, lease_epoch bigint, number integer, limit bigint
SELECT $2::text AS id, lease_epoch, number, line FROM (
  SELECT log.lease_epoch, log.number, log.line
  FROM holdfast.job AS job JOIN holdfast.job_log AS log ON log.job_seq = ANY (ARRAY[job.seq])
  WHERE job.ns = $1 AND job.id = $2::text
  UNION ALL
  SELECT log.lease_epoch, log.number, log.line
  FROM holdfast.archive AS archive
  CROSS JOIN LATERAL json_to_recordset(archive.log) AS log (lease_epoch bigint, number integer, line text)
  WHERE archive.ns + 0 = $1 AND archive.id = $2::text AND archive.log IS NOT NULL
) AS log
WHERE (lease_epoch + 0, number) > ($3::bigint, $4::integer)
ORDER BY lease_epoch, number LIMIT $5::bigint
