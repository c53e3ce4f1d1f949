-- Grants what is ready. With a job due or past its deadline it grants nothing and says so, unless forced: those come first.
-- Read by position in `claim.ts`.
--! arrays
--! args: lanes text[], limit bigint, worker_id text, nonce text, lease_ms bigint, force integer, ordinal bigint
WITH clock AS MATERIALIZED (
  SELECT us / 1000 AS now, us AS now_us
  FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS tick
),
--@include claim
--@include grant
