UPDATE holdfast_archive SET output = NULL, output_until = NULL WHERE seq IN (
  SELECT seq FROM holdfast_archive INDEXED BY holdfast_archive_output
  WHERE ns = :ns AND output_until <= :now ORDER BY output_until LIMIT :limit
)
