-- SPDX-License-Identifier: Apache-2.0
-- Ends runs that failed permanently, or that their handler cancelled (outcome 'cancelled'): moves the jobs to the history, and
-- records the attempts. Fenced, and only for one worker ($7); locked rows are left out. $2 rises, and the other arrays are in its
-- order: crashes to add, outcome, error, log tail. Returns the accepted fences.
-- params: int8[], int8[], int8[], text[], text[], text[], uuid
WITH gone AS (
    DELETE FROM claimd.job
     WHERE {own_locked_runs} AND worker_id = $7
    RETURNING *, width_bucket(fence, $2) AS n
), recorded AS (
    INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error, log_tail)
    SELECT id, fence, attempt, generation, worker_id, attempted_at, $4[n], $5[n], $6[n]
      FROM gone
        ON CONFLICT DO NOTHING
), unwatched AS (
    DELETE FROM claimd.job_live l USING gone g WHERE l.id = g.id
)
INSERT INTO claimd.job_history ({carried}, crashes, state, error)
SELECT {carried}, crashes + $3[n], CASE $4[n] WHEN 'cancelled' THEN 'cancelled' ELSE 'discarded' END, $5[n]
  FROM gone
RETURNING fence
