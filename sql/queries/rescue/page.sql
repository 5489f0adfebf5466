-- SPDX-License-Identifier: Apache-2.0
-- Walks $2 open jobs behind id $1, and returns those that may need a rescue: `why` 1 = running under a worker that is dead, unknown
-- or has ended; 2 = running for longer than $3 µs under a live worker whose fresh heartbeat does not name the job's fence. `worker`:
-- a hash of the worker, which the move checks beside the fence. The last row is the page itself: why 0, id = the last one walked
-- (NULL: none), fence = how many. Index: job_pkey; no locks.
-- params: int8, int8, int8
WITH page AS MATERIALIZED (
    SELECT id, state, fence, worker_id, attempted_at FROM claimd.job WHERE id > $1 ORDER BY id LIMIT $2
)
SELECT p.id, p.fence, CASE WHEN w.worker_id IS NULL OR w.dead OR w.stopped THEN 1 ELSE 2 END AS why,
       uuid_hash_extended(p.worker_id, 0) AS worker
  FROM page p
  LEFT JOIN claimd.worker w ON w.worker_id = p.worker_id
 WHERE p.state = 'running'
   AND (w.worker_id IS NULL OR w.dead OR w.stopped
        OR (p.attempted_at < now() - $3 * interval '1 microsecond' AND w.stale_at > now() AND p.fence <> ALL (w.held_fences)))
UNION ALL
SELECT max(id), count(*), 0, 0 FROM page
