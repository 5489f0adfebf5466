-- SPDX-License-Identifier: Apache-2.0
-- Days that are older than $1 days and every rule, or that are empty, and how far their removal has got: step 0 = attached, 1 = a
-- detach was interrupted, 2 = detached.
-- params: int4
SELECT c.relname::text AS name, CASE WHEN i.inhrelid IS NULL THEN 2 WHEN i.inhdetachpending THEN 1 ELSE 0 END AS step
  FROM pg_class c
  LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'claimd.job_history'::regclass
 WHERE c.relnamespace = 'claimd'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^job_history_[0-9]{8}$'
   AND (c.relname < 'job_history_' || to_char((now() AT TIME ZONE 'UTC')::date - claimd.longest_days($1), 'YYYYMMDD')
        OR i.inhdetachpending
        OR EXISTS (SELECT FROM claimd.history_day d WHERE d.is_empty AND c.relname = 'job_history_' || to_char(d.day, 'YYYYMMDD')))
 ORDER BY 2 DESC, 1
