-- SPDX-License-Identifier: Apache-2.0
-- Records of runs that are about to be completed that they overran their timeout: right before that, in its transaction. Fenced, and of
-- one worker ($4). $2 rises, $3, the log tails, follow it.
-- params: int8[], int8[], text[], uuid
INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error, log_tail)
SELECT id, fence, attempt, generation, worker_id, attempted_at, 'overran', 'done after its timeout, before it was killed',
       $3[width_bucket(fence, $2)]
  FROM claimd.job
 WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'running' AND fence = $2[width_bucket(fence, $2)] AND worker_id = $4
    ON CONFLICT DO NOTHING
