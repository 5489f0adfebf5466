-- SPDX-License-Identifier: Apache-2.0
-- The limits of a queue, how much of each is used, its weight, and who paused it; NULL: none, or unknown. Returns one row
-- even if the queue has no settings. `open_jobs` is counted only if the queue has max_open, and only up to a million,
-- shown as ~1000000. Index: job_feed.
-- params: name text queue
-- shows: name text, max_running number, places_taken number, starts_per_s number, may_start_now number, max_open number,
-- shows: open_jobs count, weight number, paused bool, paused_at time, paused_by text
SELECT n.name, q.max_running,
       CASE WHEN q.max_running IS NOT NULL THEN (SELECT count(*) FROM claimd.slot s WHERE s.queue = n.name AND s.fence <> 0) END
           AS places_taken,
       trim_scale(round(q.rate::numeric, 6)) AS starts_per_s,
       floor(LEAST(1 + q.rate, b.tokens + q.rate * GREATEST(0, extract(epoch FROM clock_timestamp() - b.filled_at)))) AS may_start_now,
       q.max_open,
       CASE WHEN q.max_open IS NOT NULL
            THEN (SELECT CASE WHEN count(*) = 1000000 THEN '~' ELSE '' END || count(*)
                    FROM (SELECT FROM claimd.job j WHERE j.queue = n.name LIMIT 1000000) AS j) END AS open_jobs,
       q.weight,
       COALESCE(q.paused, false) AS paused, {utc q.paused_at} AS paused_at,
       q.paused_by
  FROM (SELECT $1 COLLATE "C" AS name) AS n
  LEFT JOIN claimd.queue q ON q.name = n.name
  LEFT JOIN claimd.bucket b ON b.queue = n.name
