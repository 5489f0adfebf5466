-- SPDX-License-Identifier: Apache-2.0
-- Records runs that are about to be completed: those that overran their timeout ($4 <> 0), and those whose kind keeps the log. Sent right
-- before job_complete, in its transaction. Fenced, and only for one worker ($5). $2 rises; $3, the log tails, and $4 are in its order.
-- params: int8[], int8[], text[], int8[], uuid
INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error, log_tail)
SELECT j.id, j.fence, j.attempt, j.generation, j.worker_id, j.attempted_at, CASE WHEN o.overran THEN 'overran' ELSE 'completed' END,
       CASE WHEN o.overran THEN 'done after its timeout, before it was killed' END, $3[o.n]
  FROM claimd.job j
 CROSS JOIN LATERAL (SELECT w.n, $4[w.n] <> 0 AS overran FROM width_bucket(j.fence, $2) AS w(n)) o
 WHERE j.id = ANY ((SELECT $1)::bigint[]) AND j.state = 'running' AND j.fence = $2[o.n] AND j.worker_id = $5
    ON CONFLICT DO NOTHING
