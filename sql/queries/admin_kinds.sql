-- SPDX-License-Identifier: Apache-2.0
-- Kinds as workers announced them, what was set in place of that, how long their jobs are kept, and how many workers serve them now.
-- Also kinds that no worker has announced but for which something is set. `failed_percent`: of the runs of the jobs that ended in the
-- last hour, from the newest 2,000 pages of today's history; completed jobs that are not kept count, too.
-- shows: kind text, plugin text, version text, paused bool, workers number, max_attempts number, max_crashes number wide,
-- shows: timeout_s seconds, at_most_once bool wide, set_by_hand text list, kept text list, runs number wide, mean_s seconds,
-- shows: p50_s seconds wide, p95_s seconds, failed_percent number, announced bool wide, updated_at time wide
-- tables: kinds
WITH tail AS MATERIALIZED (
    SELECT GREATEST(0, {pages_of_today} - 2000) AS page
), ended AS (
    SELECT h.kind, sum(GREATEST(h.attempt, 1)) AS runs, count(*) FILTER (WHERE h.state = 'completed') AS completed
      FROM claimd.job_history h
     WHERE {newest_of_today} AND h.finalized_at > statement_timestamp() - interval '1 hour'
       AND h.state IN ('completed', 'discarded')
     GROUP BY h.kind
    UNION ALL
    SELECT kind, sum(jobs), sum(jobs) FROM claimd.counted_since(statement_timestamp() - interval '1 hour') GROUP BY kind
), failed AS MATERIALIZED (
    SELECT kind, round(100 * (1 - sum(completed) / sum(runs)), 2) AS percent FROM ended GROUP BY kind HAVING sum(runs) > 0
)
SELECT k.name AS kind, NULLIF(k.plugin, '') AS plugin, NULLIF(k.version, '') AS version, k.paused,
       (SELECT count(*) FROM claimd.worker w
         WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp() AND k.name = ANY (w.kinds)) AS workers,
       CASE WHEN k.at_most_once THEN 1 ELSE k.max_attempts END AS max_attempts, k.max_crashes,
       extract(epoch FROM k.timeout)::float8 AS timeout_s, k.at_most_once,
       (SELECT string_agg(h, ',' ORDER BY h) FROM jsonb_object_keys(k.set_by_hand) AS h) AS set_by_hand,
       (SELECT string_agg(CASE r.state WHEN '' THEN 'all others' ELSE r.state END
                          || CASE r.days WHEN 0 THEN ' none' ELSE format(' %sd', r.days) END, ',' ORDER BY r.state)
          FROM claimd.retention r WHERE r.scope = 'kind' AND r.name = k.name) AS kept,
       l.runs, l.mean_s, l.p50_s, l.p95_s, trim_scale(f.percent) AS failed_percent,
       k.is_announced AS announced, {utc k.updated_at} AS updated_at
  FROM claimd.kind k
  LEFT JOIN claimd.run_lengths l ON l.kind = k.name AND l.queue IS NULL
  LEFT JOIN failed f ON f.kind = k.name
 ORDER BY k.name
