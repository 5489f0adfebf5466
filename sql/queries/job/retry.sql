-- SPDX-License-Identifier: Apache-2.0
-- Makes the jobs of failed runs available again after their backoff, and records the attempts. Fenced, and only for one worker ($8);
-- locked rows are left out. $2 rises, and the other arrays are in its order: delay in microseconds, crashes to add, outcome, error,
-- log tail. Returns the accepted fences.
-- params: int8[], int8[], int8[], int8[], text[], text[], text[], uuid
WITH again AS (
    UPDATE claimd.job
       SET state = 'available', crashes = crashes + $4[width_bucket(fence, $2)],
           scheduled_at = LEAST(GREATEST(clock_timestamp(), created_at)
                                + $3[width_bucket(fence, $2)] * interval '1 microsecond', '2286-01-01 00:00:00+00')
     WHERE {own_locked_runs} AND worker_id = $8
    RETURNING id, fence, attempt, generation, worker_id, attempted_at, width_bucket(fence, $2) AS n
), recorded AS (
    INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, outcome, error, log_tail)
    SELECT id, fence, attempt, generation, worker_id, attempted_at, $5[n], $6[n], $7[n]
      FROM again
        ON CONFLICT DO NOTHING
)
SELECT fence FROM again
