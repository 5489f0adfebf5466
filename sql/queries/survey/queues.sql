-- SPDX-License-Identifier: Apache-2.0
-- The values of the leader's gauges. Rows by `part`:
--   0: n1, n2 = live and stale workers, n3 = days of the history ahead of today that exist without a gap (60 at most)
--   1: a queue: open jobs n1 = available (due), n2 = scheduled, n3 = retryable, n4 = running; us = how long its oldest available job has
--      been due; ok = paused; n5 = how long its oldest running job has been running (microseconds); n6 = waiting (for other jobs, or in a map). Only
--      queues with open jobs, a setting or a live worker: the $1 with the most open jobs under their names, the others together as
--      'other'.
--   2: n1 due jobs of `kind` in a queue, which no live worker serves; the $2 largest such pairs
--   3: what the statistics say about the table of open jobs: n1 = bytes with indexes and TOAST, n2 = dead rows, n3 = rows inserted
--   4: a job that waits although a worker that serves it has an idle slot (inv.L9): id n1, version n2, fence n3; us = how long that worker
--      has had one. For each queue and kind, the oldest due job without a limit, if it has been due for a second; $2 at most
--   5: jobs that a worker has claimed and that wait for a runner, although another worker could run any of them: us = the longest wait,
--      for each first queue of such a worker, or 'other'
--   6: a map: n1 = rows that have not ended, n2 = completed, n3 = failed, n4 = cancelled ones; the $3 newest
-- Reads all open jobs once, as they lie in the table; the caller bounds how long that takes. No locks.
-- params: int8, int8, int8
WITH live AS MATERIALIZED (
    SELECT worker_id, queues, kinds, spare_since, ready_oldest FROM claimd.live_worker
), open AS MATERIALIZED (
    SELECT queue, kind,
           count(*) FILTER (WHERE state = 'available' AND ready_at <= now()) AS available,
           count(*) FILTER (WHERE state = 'available' AND ready_at > now() AND attempt = 0 AND ready_at <> w.at) AS scheduled,
           count(*) FILTER (WHERE state = 'available' AND ready_at > now() AND attempt > 0 AND ready_at <> w.at) AS retryable,
           count(*) FILTER (WHERE state = 'available' AND ready_at = w.at) AS waiting,
           count(*) FILTER (WHERE state = 'running') AS running,
           min(ready_at) FILTER (WHERE state = 'available' AND ready_at <= now()) AS oldest,
           min(ready_at) FILTER (WHERE state = 'available' AND ready_at <= now() - interval '1 s' AND exclusive_key IS NULL) AS oldest_free,
           min(attempted_at) FILTER (WHERE state = 'running') AS started
      FROM claimd.job
     CROSS JOIN (SELECT claimd.job_waits() AS at) AS w
     GROUP BY queue, kind
), named AS (
    SELECT queue FROM open
    UNION
    SELECT name FROM claimd.queue
    UNION
    SELECT unnest(queues) COLLATE "C" FROM live
), queues AS (
    SELECT n.queue, COALESCE(sum(o.available), 0) AS available, COALESCE(sum(o.scheduled), 0) AS scheduled,
           COALESCE(sum(o.retryable), 0) AS retryable, COALESCE(sum(o.waiting), 0) AS waiting, COALESCE(sum(o.running), 0) AS running,
           min(o.oldest) AS oldest, min(o.started) AS started, EXISTS (SELECT FROM claimd.queue q WHERE q.name = n.queue AND q.paused) AS paused
      FROM named n
      LEFT JOIN open o ON o.queue = n.queue
     GROUP BY n.queue
), ranked AS (
    SELECT q.*, row_number() OVER (ORDER BY available + scheduled + retryable + waiting + running DESC, queue) AS rank FROM queues q
), beside AS ( -- the oldest due job of each queue and kind that some worker has had an idle slot for
    SELECT o.queue, o.kind, o.oldest_free, v.spare_since
      FROM open o
     CROSS JOIN LATERAL (SELECT min(spare_since) AS spare_since FROM live
                          WHERE o.queue = ANY (queues) AND o.kind = ANY (kinds)) AS v
     WHERE o.oldest_free IS NOT NULL AND v.spare_since IS NOT NULL
       AND NOT EXISTS (SELECT FROM claimd.stopped_kind k WHERE k.name = o.kind)
       AND NOT EXISTS (SELECT FROM claimd.queue q WHERE q.name = o.queue AND (q.paused OR q.limited))
)
SELECT 0 AS part, NULL::text AS queue, NULL::text AS kind,
       (SELECT count(*) FROM live) AS n1,
       (SELECT count(*) FROM claimd.worker WHERE NOT dead AND NOT stopped AND stale_at <= now()) AS n2,
       (SELECT min(n) - 1 FROM generate_series(0, 61) AS n
         WHERE n = 61 OR to_regclass('claimd.job_history_'
                                     || to_char((now() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD')) IS NULL)::int8 AS n3,
       0::int8 AS n4, 0::int8 AS us, false AS ok, 0::int8 AS n5, 0::int8 AS n6
UNION ALL
SELECT 1, CASE WHEN rank <= $1 THEN queue ELSE 'other' END, NULL,
       sum(available)::int8, sum(scheduled)::int8, sum(retryable)::int8, sum(running)::int8,
       COALESCE(EXTRACT(EPOCH FROM now() - min(oldest)) * 1000000, 0)::int8, bool_or(paused),
       GREATEST(COALESCE(EXTRACT(EPOCH FROM now() - min(started)) * 1000000, 0), 0)::int8, sum(waiting)::int8
  FROM ranked
 GROUP BY 2
UNION ALL
SELECT 3, NULL, NULL, pg_total_relation_size(relid), n_dead_tup, n_tup_ins, 0, 0, false, 0, 0
  FROM pg_stat_user_tables
 WHERE relid = 'claimd.job'::regclass
UNION ALL
(SELECT 2, o.queue, o.kind, o.available, 0, 0, 0, 0, false, 0, 0
   FROM open o
  WHERE o.available > 0
    AND NOT EXISTS (SELECT FROM claimd.stopped_kind k WHERE k.name = o.kind)
    AND NOT EXISTS (SELECT FROM live w WHERE o.queue = ANY (w.queues) AND o.kind = ANY (w.kinds))
  ORDER BY o.available DESC, o.queue, o.kind
  LIMIT $2)
UNION ALL
(SELECT 4, CASE WHEN r.rank <= $1 THEN b.queue ELSE 'other' END, NULL, j.id, j.version, j.fence, 0,
        (EXTRACT(EPOCH FROM now() - b.spare_since) * 1000000)::int8, false, 0, 0
   FROM beside b
   JOIN ranked r ON r.queue = b.queue
  CROSS JOIN LATERAL (SELECT id, version, fence FROM claimd.job
                       WHERE queue = b.queue AND kind = b.kind AND ready_at = b.oldest_free AND state = 'available'
                         AND exclusive_key IS NULL
                       ORDER BY id LIMIT 1) AS j
  ORDER BY b.oldest_free, b.queue, b.kind
  LIMIT $2)
UNION ALL
SELECT 5, CASE WHEN r.rank <= $1 THEN r.queue ELSE 'other' END, NULL, 0, 0, 0, 0,
       max(EXTRACT(EPOCH FROM LEAST(w.ready_oldest, now() - v.spare_since)) * 1000000)::int8, false, 0, 0
  FROM live w
  JOIN live v ON v.worker_id <> w.worker_id AND v.spare_since < now() AND v.queues @> w.queues AND v.kinds @> w.kinds
  JOIN ranked r ON r.queue = w.queues[1]
 WHERE w.ready_oldest > interval '1 s'
 GROUP BY 2
UNION ALL
(SELECT 6, m.name, NULL, m.rows - c.completed - c.failed - c.cancelled, c.completed, c.failed, c.cancelled, 0, false, 0, 0
   FROM claimd.map m
   JOIN claimd.map_count c ON c.map_id = m.id
  ORDER BY m.id DESC
  LIMIT $3)
