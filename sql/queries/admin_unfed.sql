-- SPDX-License-Identifier: Apache-2.0
-- The given jobs that still wait to be fed: they are available and due, and a live worker of their queue, which is not paused, serves
-- their kind. Returns where their hints would be: queue, kind, priority. Index: job_pkey.
-- params: int8[]
SELECT j.id, j.queue, j.kind, j.priority
  FROM claimd.job j
 WHERE j.id = ANY ($1) AND j.state = 'available' AND j.ready_at <= clock_timestamp()
   AND NOT EXISTS (SELECT FROM claimd.queue q WHERE q.name = j.queue AND q.paused)
   AND EXISTS (SELECT FROM claimd.worker w
                WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp()
                  AND j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds))
