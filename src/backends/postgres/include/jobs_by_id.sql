-- The live jobs with the ids in `$2`, each looked up by its own.
(
  SELECT job.* FROM unnest($2::text[]) WITH ORDINALITY AS input (id, i) JOIN holdfast.job AS job ON true
--@include by_id
) AS job
