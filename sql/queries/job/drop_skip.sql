-- SPDX-License-Identifier: Apache-2.0
-- job_drop without waiting: rows that another session has locked are left out (INTERFACES rule 4).
-- params: int8[], int8[], uuid
WITH gone AS (
    DELETE FROM claimd.job
     WHERE {own_locked_runs} AND worker_id = $3
    RETURNING *
), kept AS (
    INSERT INTO claimd.job_history ({carried}, crashes, state)
    SELECT {carried}, crashes, 'completed'
      FROM gone WHERE flags & {flag.batch|awaited|map} <> 0
), counted AS (
    INSERT INTO claimd.completed_count AS c (at, worker_id, kind, queue, jobs)
    SELECT date_trunc('minute', clock_timestamp()), $3, kind, queue, count(*)
      FROM gone
     WHERE flags & {flag.batch|awaited|map} = 0
     GROUP BY kind, queue
     ORDER BY kind, queue
        ON CONFLICT ON CONSTRAINT completed_count_pkey DO UPDATE SET jobs = c.jobs + excluded.jobs
)
SELECT fence FROM gone
