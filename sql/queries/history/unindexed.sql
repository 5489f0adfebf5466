-- SPDX-License-Identifier: Apache-2.0
-- An index that a past day lacks, of the newest such day. is_broken: the index exists, but its creation was interrupted. The present
-- day has none of these indexes, so that the ends of jobs do not pay for them.
SELECT c.relname::text AS day, w.column_name AS "column", i.indexrelid IS NOT NULL AS is_broken
  FROM pg_class c
  JOIN pg_inherits h ON h.inhrelid = c.oid AND h.inhparent = 'claimd.job_history'::regclass AND NOT h.inhdetachpending
 CROSS JOIN (VALUES ('tags'), ('metadata'), ('failed'), ('kind'), ('queue'), ('ended')) AS w(column_name)
  LEFT JOIN pg_class x ON x.relnamespace = c.relnamespace AND x.relname = c.relname || '_' || w.column_name
  LEFT JOIN pg_index i ON i.indexrelid = x.oid
 WHERE c.relnamespace = 'claimd'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^job_history_[0-9]{8}$'
   AND c.relname < 'job_history_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')
   AND (i.indexrelid IS NULL OR NOT i.indisvalid)
 ORDER BY c.relname DESC, 2 DESC
 LIMIT 1
