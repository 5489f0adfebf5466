-- SPDX-License-Identifier: Apache-2.0
-- What happened to one job, in order: made, due, each attempt's start and end, its end. An attempt that succeeded, or that runs, is
-- in the job's row; one that failed or was lost in job_attempt. Seconds count from the creation. Indexes: job_pkey, job_history_id,
-- job_attempt_pkey.
-- params: int8
WITH j AS MATERIALIZED (
    SELECT * FROM claimd.jobs WHERE id = $1 ORDER BY generation DESC LIMIT 1
), a AS MATERIALIZED (
    SELECT * FROM claimd.job_attempt WHERE job_id = $1
), event AS (
    SELECT created_at AS at, 1 AS step, 'created' AS event, NULL::integer AS attempt, NULL::uuid AS worker_id, NULL AS detail FROM j
    UNION ALL
    SELECT ready_at, 2, 'due', NULL, NULL, NULL FROM j WHERE ready_at > created_at AND (finalized_at IS NULL OR ready_at <= finalized_at)
    UNION ALL
    SELECT started_at, 3, 'started', attempt, worker_id, NULL FROM a
    UNION ALL
    SELECT ended_at, 4, outcome, attempt, worker_id, error FROM a
    UNION ALL
    SELECT attempted_at, 3, 'started', attempt, worker_id, NULL
      FROM j
     WHERE attempted_at IS NOT NULL AND state IN ('running', 'completed', 'discarded')
       AND NOT EXISTS (SELECT FROM a WHERE a.fence = j.fence)
    UNION ALL
    SELECT finalized_at, 5, state, NULL, NULL, NULL FROM j WHERE finalized_at IS NOT NULL
)
SELECT to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at,
       round(extract(epoch FROM e.at - j.created_at), 3) AS after_s,
       e.event, e.attempt, w.host, e.detail
  FROM event e
 CROSS JOIN j
  LEFT JOIN claimd.worker w ON w.worker_id = e.worker_id
 ORDER BY e.step = 5, e.at, e.step
