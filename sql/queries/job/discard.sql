-- SPDX-License-Identifier: Apache-2.0
-- Ends runs that failed for good, or whose handler gave them up (outcome 'cancelled'): to the history, and the attempt is recorded.
-- Fenced, and of one worker ($7); locked rows are left out. $2 rises, the other arrays follow it: crashes to add, outcome, error, log
-- tail. Returns the fences that were accepted.
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
