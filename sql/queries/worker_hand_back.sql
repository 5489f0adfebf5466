-- SPDX-License-Identifier: Apache-2.0
-- Hands back what ran under a dead worker's id, as a rescue does: the attempt stays charged (INTERFACES rule 3); available
-- again, or discarded when no attempt is left or the kind may start only once. Locked rows are left to the scheduler. The
-- saved marks of their lanes go back in the same transaction. The caller has freed the leases before.
-- params: uuid
WITH mine AS MATERIALIZED (
    SELECT j.id,
           CASE WHEN k.at_most_once THEN 'lost: its worker died, and it must not start twice'
                WHEN j.attempt >= COALESCE(j.max_attempts, k.max_attempts, 25) OR j.crashes >= COALESCE(k.max_crashes, 3)
                THEN 'its worker died, and no attempt is left' END AS verdict
      FROM claimd.job j
      LEFT JOIN claimd.kind k ON k.name = j.kind
     WHERE j.worker_id = $1 AND j.state = 'running'
       FOR UPDATE OF j SKIP LOCKED
), gone AS (
    DELETE FROM claimd.job j USING mine m WHERE j.id = m.id AND m.verdict IS NOT NULL
    RETURNING j.*, m.verdict
), back AS (
    UPDATE claimd.job j SET state = 'available' FROM mine m WHERE j.id = m.id AND m.verdict IS NULL
    RETURNING j.*
), recorded AS (
    INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error)
    SELECT id, fence, attempt, generation, worker_id, attempted_at, 'lost', 'its worker died' FROM gone
    UNION ALL
    SELECT id, fence, attempt, generation, worker_id, attempted_at, 'lost', 'its worker died' FROM back
        ON CONFLICT DO NOTHING
), ended AS (
    INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                                    generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                                    state, error)
    SELECT id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
           generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
           'discarded', verdict
      FROM gone
), marks AS (
    SELECT l.queue, l.priority, l.share, b.ready_at
      FROM claimd.lane l
      JOIN (SELECT queue, priority, share, min(ready_at) AS ready_at FROM back GROUP BY 1, 2, 3) b
           USING (queue, priority, share)
     WHERE l.low_water > b.ready_at
     ORDER BY l.queue, l.priority, l.share
       FOR UPDATE OF l
)
UPDATE claimd.lane l
   SET low_water = m.ready_at
  FROM marks m
 WHERE (l.queue, l.priority, l.share) = (m.queue, m.priority, m.share) AND l.low_water > m.ready_at
