-- SPDX-License-Identifier: Apache-2.0
-- One look at the queue, in one statement and one round trip. Rows by `part`:
--   0: at = now()
--   1: a row of range `n`, in order; ok = it is available
--   2: at = when the first row of range `n` that is not due yet falls due
--   3: a lane that was found in gap `n`: name = its queue, id = 64 · priority + share
-- Ranges ($1-$7): queue, priority, share, after (time in µs, id), to (time in µs, 0 = now), rows.
-- Gaps between the lanes that are known ($8-$12), by form: 0 = shares of queue and priority, 1 = priorities of a queue,
-- 2 = queues ('lo,hi'). Known lanes are never walked to find others: their dead entries would cost time each time. The conditions are
-- by column, because a scan does not stop at the upper end of a row comparison.
-- Index: job_feed only; no locks. A walk is bounded by rows, not by rows that are available.
-- params: text[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], text[], int8[], int8[], int8[]
WITH range AS (
    SELECT n, queue, priority::int2, share::int2, timestamptz 'epoch' + after_us * interval '1 microsecond' AS after_at, after_id,
           CASE WHEN to_us = 0 THEN now() ELSE timestamptz 'epoch' + to_us * interval '1 microsecond' END AS to_at, to_us,
           rows_max
      FROM unnest($1, $2, $3, $4, $5, $6, $7) WITH ORDINALITY
           AS r(queue, priority, share, after_us, after_id, to_us, rows_max, n)
), gap AS (
    SELECT form, queue, split_part(queue, ',', 1) COLLATE "C" AS lo_queue, split_part(queue, ',', 2) COLLATE "C" AS hi_queue,
           priority::int2, lo::int2, hi::int2
      FROM unnest($8, $9, $10, $11, $12) AS g(form, queue, priority, lo, hi)
)
SELECT 0 AS part, 0::int8 AS n, 0::int8 AS id, now() AS at, NULL::text AS name, false AS ok
UNION ALL
SELECT 1, r.n, j.id, j.ready_at, j.kind, j.state = 'available'
  FROM range r
 CROSS JOIN LATERAL (SELECT id, ready_at, kind, state FROM claimd.job
                      WHERE queue = r.queue AND priority = r.priority AND share = r.share
                        AND (ready_at, id) > (r.after_at, r.after_id) AND ready_at <= r.to_at
                      ORDER BY ready_at, id LIMIT r.rows_max) j
UNION ALL
SELECT 2, r.n, 0, j.ready_at, NULL, false
  FROM range r
 CROSS JOIN LATERAL (SELECT ready_at FROM claimd.job
                      WHERE queue = r.queue AND priority = r.priority AND share = r.share AND ready_at > now()
                      ORDER BY ready_at LIMIT 1) j
 WHERE r.to_us = 0
UNION ALL
SELECT 3, 0, 64 * j.priority + j.share, now(), j.queue, false
  FROM gap g
 CROSS JOIN LATERAL (SELECT queue, priority, share FROM claimd.job
                      WHERE queue = g.queue AND priority = g.priority AND share > g.lo AND share < g.hi
                      ORDER BY share LIMIT 1) j
 WHERE g.form = 0
UNION ALL
SELECT 3, 0, 64 * j.priority + j.share, now(), j.queue, false
  FROM gap g
 CROSS JOIN LATERAL (SELECT queue, priority, share FROM claimd.job
                      WHERE queue = g.queue AND priority > g.lo AND priority < g.hi
                      ORDER BY priority, share LIMIT 1) j
 WHERE g.form = 1
UNION ALL
SELECT 3, 0, 64 * j.priority + j.share, now(), j.queue, false
  FROM gap g
 CROSS JOIN LATERAL (SELECT queue, priority, share FROM claimd.job
                      WHERE queue > g.lo_queue AND queue < g.hi_queue
                      ORDER BY queue, priority, share LIMIT 1) j
 WHERE g.form = 2
