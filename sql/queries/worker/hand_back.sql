-- SPDX-License-Identifier: Apache-2.0
-- Hands back what ran under a dead worker's id, as a rescue does: the attempt stays charged (INTERFACES rule 3). A job becomes
-- available again, is discarded if no attempt is left or its kind may start only once, or is cancelled if that was requested while it
-- ran. Locked rows are left to the scheduler. The caller has released the leases before, and pushes the hints of the returned rows,
-- which are behind the feed's cursor.
-- params: uuid
WITH mine AS MATERIALIZED (
    SELECT j.id,
           EXISTS (SELECT FROM claimd.job_live l WHERE l.id = j.id AND l.fence = j.fence AND l.cancel_requested) AS is_asked,
           CASE WHEN k.at_most_once THEN 'lost: its worker died, and it must not start twice'
                WHEN j.attempt >= COALESCE(j.max_attempts, k.max_attempts, 25) OR j.crashes >= COALESCE(k.max_crashes, 3)
                THEN 'its worker died, and no attempt is left' END AS verdict
      FROM claimd.job j
      LEFT JOIN claimd.kind k ON k.name = j.kind
     WHERE j.worker_id = $1 AND j.state = 'running'
       FOR UPDATE OF j SKIP LOCKED
), gone AS (
    DELETE FROM claimd.job j USING mine m WHERE j.id = m.id AND (m.verdict IS NOT NULL OR m.is_asked)
    RETURNING j.*, m.verdict
), back AS (
    UPDATE claimd.job j SET state = 'available' FROM mine m WHERE j.id = m.id AND m.verdict IS NULL AND NOT m.is_asked
    RETURNING j.*
), unwatched AS (
    DELETE FROM claimd.job_live l USING gone g WHERE l.id = g.id
), recorded AS (
    INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error)
    SELECT id, fence, attempt, generation, worker_id, attempted_at, 'lost', 'its worker died' FROM gone
    UNION ALL
    SELECT id, fence, attempt, generation, worker_id, attempted_at, 'lost', 'its worker died' FROM back
        ON CONFLICT DO NOTHING
), ended AS (
    INSERT INTO claimd.job_history ({carried}, crashes, state, error)
    SELECT {carried}, crashes, CASE WHEN verdict IS NULL THEN 'cancelled' ELSE 'discarded' END,
           COALESCE(verdict, 'cancelled while it ran')
      FROM gone
)
SELECT id, queue, kind, priority, ready_at FROM back
