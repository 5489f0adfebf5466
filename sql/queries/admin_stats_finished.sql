-- SPDX-License-Identifier: Apache-2.0
-- The jobs that ended in the last minutes, from the newest pages of today's history. If these pages do not reach back far enough, or
-- the period began before midnight (UTC), the numbers are estimated from them, and begin with ~. A burst may have filled the sample in
-- a moment, so no estimate exceeds what the pages of the two days can hold. Completed jobs that are not kept are counted separately.
-- shows: minutes number, completed count, discarded count, cancelled count, per_s number, estimated bool hidden
WITH size AS (
    SELECT {pages_of_today} AS today,
           COALESCE(pg_relation_size(to_regclass('claimd.job_history_'
               || to_char(statement_timestamp() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD'))), 0) / 8192 AS yesterday
), tail AS MATERIALIZED (
    SELECT GREATEST(0, today - 2000) AS page, today, yesterday, {start_of_today} AS midnight FROM size
), ended AS MATERIALIZED (
    SELECT h.state, h.finalized_at
      FROM claimd.job_history h
     WHERE {newest_of_today}
), span AS (
    SELECT m, GREATEST(0.1, LEAST(m * 60, extract(epoch FROM statement_timestamp() - t.midnight),
                                  CASE WHEN t.page > 0 THEN extract(epoch FROM statement_timestamp()
                                                                    - (SELECT min(finalized_at) FROM ended)) END)) AS seconds
      FROM tail t, unnest(ARRAY[1, 5, 15]) AS m
), counted AS (
    SELECT s.m, s.seconds < s.m * 60 AS is_estimated,
           LEAST(s.m * 60 / s.seconds,
                 (SELECT (today + CASE WHEN midnight > statement_timestamp() - s.m * interval '1 minute' THEN yesterday ELSE 0 END)
                         / GREATEST(1.0, today - page) FROM tail)) AS by,
           count(*) FILTER (WHERE e.state = 'completed') AS completed,
           count(*) FILTER (WHERE e.state = 'discarded') AS discarded,
           count(*) FILTER (WHERE e.state = 'cancelled') AS cancelled,
           count(e.state) AS jobs
      FROM span s
      LEFT JOIN ended e ON e.finalized_at > statement_timestamp() - s.m * interval '1 minute'
     GROUP BY s.m, s.seconds
)
SELECT m AS minutes,
       CASE WHEN is_estimated THEN '~' ELSE '' END || round(completed * by + u.jobs) AS completed,
       CASE WHEN is_estimated THEN '~' ELSE '' END || round(discarded * by) AS discarded,
       CASE WHEN is_estimated THEN '~' ELSE '' END || round(cancelled * by) AS cancelled,
       round(((counted.jobs * by + u.jobs) / (m * 60))::numeric, 1) AS per_s, is_estimated AS estimated
  FROM counted
 CROSS JOIN LATERAL (SELECT COALESCE(sum(n.jobs), 0) AS jobs
                       FROM claimd.counted_since(statement_timestamp() - counted.m * interval '1 minute') n) u
 ORDER BY m
