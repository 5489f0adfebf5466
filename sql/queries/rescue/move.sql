-- SPDX-License-Identifier: Apache-2.0
-- Moves jobs ($1) that still run under the fences ($2) and workers ($3, hashes) that were seen; the caller holds the lease of each
-- job. A job goes back to the queue, charged; it is discarded if no attempt is left, and discarded as lost if it may have started and
-- must not start twice. Rows that others have locked are left for the next time (`outcome` 3). Returns what was moved, so that the
-- hints can be pushed: `outcome` 0 = available again, 1 = discarded, 2 = lost.
-- params: int8[], int8[], int8[]
WITH victim AS MATERIALIZED (
    SELECT j.id, COALESCE(k.at_most_once, false) AS is_lost,
           j.attempt >= COALESCE(j.max_attempts, k.max_attempts, 25) OR j.crashes >= COALESCE(k.max_crashes, 3) AS is_used_up,
           j.fence, j.attempt, j.generation, j.worker_id, j.attempted_at
      FROM unnest($1, $2, $3) AS t(id, fence, worker)
      JOIN claimd.job j ON j.id = t.id AND j.fence = t.fence AND uuid_hash_extended(j.worker_id, 0) = t.worker AND
                           j.state = 'running'
      LEFT JOIN claimd.kind k ON k.name = j.kind
       FOR UPDATE OF j SKIP LOCKED
), back AS (
    UPDATE claimd.job j SET state = 'available' FROM victim v
     WHERE j.id = v.id AND NOT v.is_lost AND NOT v.is_used_up
    RETURNING j.id, j.queue, j.kind, j.priority, j.share, j.ready_at
), gone AS (
    DELETE FROM claimd.job j USING victim v WHERE j.id = v.id AND (v.is_lost OR v.is_used_up) RETURNING j.*, v.is_lost
), finished AS (
    INSERT INTO claimd.job_history ({carried}, crashes, state, error)
    SELECT {carried}, crashes, 'discarded',
           CASE WHEN is_lost THEN 'lost: its worker died, and it must not start twice'
                ELSE 'its worker died, and no attempt is left' END
      FROM gone
), told AS (
    INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error)
    SELECT id, fence, attempt, generation, worker_id, attempted_at, 'lost', 'its worker died' FROM victim
        ON CONFLICT DO NOTHING
), unwatched AS (
    DELETE FROM claimd.job_live l USING gone g WHERE l.id = g.id
)
SELECT id, 0 AS outcome, queue, kind, priority, ready_at FROM back
UNION ALL
SELECT id, CASE WHEN is_lost THEN 2 ELSE 1 END, queue, kind, priority, ready_at FROM gone
UNION ALL
SELECT j.id, 3, j.queue, j.kind, j.priority, j.ready_at
  FROM unnest($1, $2, $3) AS t(id, fence, worker)
  JOIN claimd.job j ON j.id = t.id AND j.fence = t.fence AND uuid_hash_extended(j.worker_id, 0) = t.worker AND
                       j.state = 'running'
 WHERE NOT EXISTS (SELECT FROM victim v WHERE v.id = j.id)
