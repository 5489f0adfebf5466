-- SPDX-License-Identifier: Apache-2.0
-- The jobs that ended in the last minute, and the 95th percentiles of how long they waited and ran (seconds), from the newest 2,000
-- pages of today's history. If these pages do not reach back that far, the numbers are estimated from them, as in
-- admin_stats_finished. Completed jobs that are not kept are counted, but not among the percentiles.
-- shows: completed number, discarded number, cancelled number, wait_p95_s number, run_p95_s number, estimated bool
WITH tail AS MATERIALIZED (
    SELECT GREATEST(0, {pages_of_today} - 2000) AS page
), ended AS MATERIALIZED (
    SELECT h.state, h.finalized_at,
           CASE WHEN h.attempted_at > 'epoch' THEN GREATEST(0, extract(epoch FROM h.attempted_at - h.ready_at)) END AS wait_s,
           CASE WHEN h.attempted_at > 'epoch' THEN GREATEST(0, extract(epoch FROM h.finalized_at - h.attempted_at)) END AS run_s
      FROM claimd.job_history h
     WHERE {newest_of_today}
), span AS (
    SELECT GREATEST(0.1, LEAST(60, CASE WHEN page > 0 THEN extract(epoch FROM statement_timestamp()
                                                                  - (SELECT min(finalized_at) FROM ended)) END)) AS seconds
      FROM tail
), counted AS (
    SELECT count(*) FILTER (WHERE state = 'completed') AS completed, count(*) FILTER (WHERE state = 'discarded') AS discarded,
           count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
           round((percentile_disc(0.95) WITHIN GROUP (ORDER BY wait_s))::numeric, 3) AS wait_p95_s,
           round((percentile_disc(0.95) WITHIN GROUP (ORDER BY run_s))::numeric, 3) AS run_p95_s
      FROM ended
     WHERE finalized_at > statement_timestamp() - interval '1 minute'
)
SELECT round(c.completed * 60 / s.seconds) + u.jobs AS completed, round(c.discarded * 60 / s.seconds) AS discarded,
       round(c.cancelled * 60 / s.seconds) AS cancelled, c.wait_p95_s, c.run_p95_s, s.seconds < 60 AS estimated
  FROM counted c
 CROSS JOIN span s
 CROSS JOIN LATERAL (SELECT COALESCE(sum(n.jobs), 0) AS jobs
                       FROM claimd.counted_since(statement_timestamp() - interval '1 minute') n) u
