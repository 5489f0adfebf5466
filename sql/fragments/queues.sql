-- SPDX-License-Identifier: Apache-2.0
-- What admin_queues and admin_queue_show select, from a row `chosen`: the name of one queue, or NULL for all, and how many rows are
-- counted, shared among the queues. The cost is bounded on tables of any size: queues are found by hopping over the feed index; for a
-- queue with more jobs than its share, the numbers are estimated from 2,000 pages, rounded to three digits, and begin with ~. The rate
-- is that of the newest 2,000 pages of today's history, and so is the 95th percentile of how long jobs waited that ended in the last
-- 15 minutes. Indexes: job_feed.
{lanes}, live AS MATERIALIZED (
    SELECT queues, kinds FROM claimd.worker WHERE NOT dead AND NOT stopped AND stale_at > statement_timestamp()
), tail AS MATERIALIZED (
    SELECT GREATEST(0, {pages_of_today} - 2000) AS page, {start_of_today} AS midnight
), ended AS MATERIALIZED (
    SELECT h.queue, h.finalized_at,
           CASE WHEN h.attempted_at > 'epoch' THEN GREATEST(0, extract(epoch FROM h.attempted_at - h.ready_at)) END AS wait_s
      FROM claimd.job_history h
     WHERE {newest_of_today}
), span AS (
    SELECT GREATEST(0.1, LEAST(60, extract(epoch FROM statement_timestamp() - t.midnight),
                               CASE WHEN t.page > 0 THEN extract(epoch FROM statement_timestamp()
                                                                 - (SELECT min(finalized_at) FROM ended)) END)) AS seconds
      FROM tail t
), rate AS MATERIALIZED (
    SELECT queue, round((count(*) / (SELECT seconds FROM span))::numeric, 1) AS per_s
      FROM ended
     WHERE finalized_at > statement_timestamp() - interval '1 minute'
     GROUP BY queue
), waited AS MATERIALIZED (
    SELECT queue, trim_scale(round((percentile_disc(0.95) WITHIN GROUP (ORDER BY wait_s))::numeric, 3)) AS p95_s
      FROM ended
     WHERE finalized_at > statement_timestamp() - interval '15 minutes'
     GROUP BY queue
), dropped AS MATERIALIZED (
    SELECT queue, round(sum(jobs) / 60, 1) AS per_s
      FROM claimd.counted_since(statement_timestamp() - interval '1 minute')
     GROUP BY queue
), known AS MATERIALIZED (
    SELECT a.name
      FROM (SELECT queue AS name FROM lane
             UNION SELECT name FROM claimd.queue
             UNION SELECT name FROM claimd.retention WHERE scope = 'queue'
             UNION SELECT unnest(queues) FROM live
             UNION SELECT queue FROM rate
             UNION SELECT queue FROM dropped) a
     CROSS JOIN chosen c
     WHERE c.name IS NULL OR a.name = c.name
), budget AS MATERIALIZED (
    SELECT GREATEST(1000, (SELECT jobs FROM chosen) / GREATEST(1, count(*))) AS jobs FROM known
), counted AS MATERIALIZED (
    SELECT k.name, c.*
      FROM known k
     CROSS JOIN LATERAL (
         SELECT count(*) AS jobs,
                count(*) FILTER (WHERE j.state = 'available') AS available,
                count(*) FILTER (WHERE j.state = 'scheduled') AS scheduled,
                count(*) FILTER (WHERE j.state = 'retryable') AS retryable,
                count(*) FILTER (WHERE j.state = 'waiting') AS waiting,
                count(*) FILTER (WHERE j.state = 'running') AS running
           FROM (SELECT claimd.open_state(state, ready_at, attempt, flags) AS state FROM claimd.job WHERE queue = k.name
                  ORDER BY queue, priority, share, ready_at, id
                  LIMIT (SELECT jobs FROM budget)) j) c
), sampled AS MATERIALIZED (
    SELECT j.queue,
           count(*) FILTER (WHERE j.state = 'available') AS available,
           count(*) FILTER (WHERE j.state = 'scheduled') AS scheduled,
           count(*) FILTER (WHERE j.state = 'retryable') AS retryable,
           count(*) FILTER (WHERE j.state = 'waiting') AS waiting
      FROM (SELECT queue, claimd.open_state(state, ready_at, attempt, flags) AS state
              FROM claimd.job TABLESAMPLE SYSTEM (LEAST(100, 200000.0 / GREATEST(1, pg_relation_size('claimd.job') / 8192)))
             WHERE EXISTS (SELECT FROM counted c, budget b WHERE c.jobs >= b.jobs)) j
     GROUP BY j.queue
), scale AS (
    SELECT GREATEST(1, pg_relation_size('claimd.job') / 8192 / 2000.0) AS by
), depth AS (
    SELECT c.name, c.jobs >= b.jobs AS is_estimated, c.running,
           CASE WHEN c.jobs >= b.jobs THEN COALESCE(round(s.available * f.by,
                    LEAST(0, 3 - length(trunc(s.available * f.by)::text))), 0) ELSE c.available END AS available,
           CASE WHEN c.jobs >= b.jobs THEN COALESCE(round(s.scheduled * f.by,
                    LEAST(0, 3 - length(trunc(s.scheduled * f.by)::text))), 0) ELSE c.scheduled END AS scheduled,
           CASE WHEN c.jobs >= b.jobs THEN COALESCE(round(s.retryable * f.by,
                    LEAST(0, 3 - length(trunc(s.retryable * f.by)::text))), 0) ELSE c.retryable END AS retryable,
           CASE WHEN c.jobs >= b.jobs THEN COALESCE(round(s.waiting * f.by,
                    LEAST(0, 3 - length(trunc(s.waiting * f.by)::text))), 0) ELSE c.waiting END AS waiting
      FROM counted c
     CROSS JOIN budget b
     CROSS JOIN scale f
      LEFT JOIN sampled s ON s.queue = c.name
), oldest AS (
    SELECT l.queue, min(o.ready_at) AS ready_at
      FROM lane l
     CROSS JOIN LATERAL (SELECT ready_at
                           FROM (SELECT ready_at, state FROM claimd.job
                                  WHERE queue = l.queue AND priority = l.priority AND share = l.share
                                    AND ready_at <= statement_timestamp()
                                  ORDER BY ready_at, id LIMIT 10000) h
                          WHERE state = 'available' LIMIT 1) o
     GROUP BY l.queue
)
SELECT d.name AS queue,
       CASE WHEN d.is_estimated THEN '~' ELSE '' END || d.available AS available,
       CASE WHEN d.is_estimated THEN '~' ELSE '' END || d.scheduled AS scheduled,
       CASE WHEN d.is_estimated THEN '~' ELSE '' END || d.retryable AS retryable,
       CASE WHEN d.is_estimated THEN '~' ELSE '' END || d.waiting AS waiting,
       CASE WHEN d.is_estimated THEN '~' ELSE '' END || d.running AS running,
       COALESCE(GREATEST(0, round(extract(epoch FROM statement_timestamp() - o.ready_at), 1)), 0) AS oldest_due_s,
       COALESCE(r.per_s, 0) + COALESCE(x.per_s, 0) AS per_s,
       EXISTS (SELECT FROM claimd.queue q WHERE q.name = d.name AND q.paused) AS paused,
       (SELECT count(*) FROM live w WHERE d.name = ANY (w.queues)) AS workers,
       (SELECT string_agg(DISTINCT k, ',') FROM live w, unnest(w.kinds) AS k WHERE d.name = ANY (w.queues)) AS kinds,
       w.p95_s AS wait_p95_s, d.is_estimated AS estimated
  FROM depth d
  LEFT JOIN oldest o ON o.queue = d.name
  LEFT JOIN rate r ON r.queue = d.name
  LEFT JOIN waited w ON w.queue = d.name
  LEFT JOIN dropped x ON x.queue = d.name
 ORDER BY d.name
