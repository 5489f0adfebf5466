-- SPDX-License-Identifier: Apache-2.0
-- Of the jobs of admin_jobs_list, whose parameters come first, those whose args contain a text ($19, in any case): at most $20. `read`:
-- how many jobs were read, at most $13, and `lowest`: the last of them; both are in each row, and in a row without a job if none has
-- the text. $14 has 'args'. Indexes: those of admin_jobs_list.
-- params: bool, bool, int8, int8, timestamptz, timestamptz, text[], text[], text[], text[], text, text, int4, text[], text, int8, text,
-- params: text, text, int4
WITH list AS MATERIALIZED (SELECT * FROM ({admin_jobs_list}) AS all_jobs)
SELECT s.read, s.lowest, found.*
  FROM (SELECT count(*) AS read, min(id) AS lowest FROM list) s
  LEFT JOIN (SELECT * FROM list WHERE strpos(lower(args::text), lower($19)) > 0 ORDER BY id DESC LIMIT $20) AS found ON true
 ORDER BY found.id DESC
