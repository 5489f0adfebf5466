-- SPDX-License-Identifier: Apache-2.0
-- Kinds with due jobs that are not paused and that no live worker of their queue serves, among the first 20,000 due jobs of each
-- lane. Hops over the feed index from lane to lane, so that the cost is bounded on a table of any size. has_workers: whether the
-- queue has workers; hosts_of_kind: the hosts that serve the kind for other queues. Index: job_feed.
WITH RECURSIVE {lanes}
SELECT l.queue, j.kind, count(*) AS jobs,
       EXISTS (SELECT FROM claimd.worker w WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > statement_timestamp()
                  AND l.queue = ANY (w.queues)) AS has_workers,
       (SELECT string_agg(DISTINCT w.host, ', ') FROM claimd.worker w
         WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > statement_timestamp() AND j.kind = ANY (w.kinds)) AS hosts_of_kind
  FROM lane l
 CROSS JOIN LATERAL (SELECT kind, state FROM claimd.job
                      WHERE queue = l.queue AND priority = l.priority AND share = l.share AND ready_at <= statement_timestamp()
                      ORDER BY ready_at, id LIMIT 20000) j
 WHERE j.state = 'available'
   AND NOT EXISTS (SELECT FROM claimd.stopped_kind k WHERE k.name = j.kind)
   AND NOT EXISTS (SELECT FROM claimd.worker w
                    WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > statement_timestamp()
                      AND l.queue = ANY (w.queues) AND j.kind = ANY (w.kinds))
 GROUP BY l.queue, j.kind
 ORDER BY count(*) DESC
 LIMIT 10
