-- SPDX-License-Identifier: Apache-2.0
-- Kinds with due jobs that no live worker of their queue serves; a walk over the distinct (queue, priority, share) of the feed
-- index would not give kinds, so this reads the open jobs.
SELECT j.queue, j.kind, count(*) AS jobs
  FROM claimd.job j
 WHERE j.state = 'available' AND j.ready_at <= statement_timestamp()
   AND NOT EXISTS (SELECT FROM claimd.worker w
                    WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > statement_timestamp()
                      AND j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds))
 GROUP BY j.queue, j.kind
 ORDER BY count(*) DESC
 LIMIT 10
