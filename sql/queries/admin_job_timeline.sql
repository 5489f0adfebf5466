-- SPDX-License-Identifier: Apache-2.0
-- The events of one job, in order: created, due, edited, the start and end of each attempt, its end, and an operator's retry, which
-- begins its next generation. An attempt that succeeded or is running is in the job's row; one that failed or was lost is in
-- job_attempt. The time when it was due is known only for the last attempt of each generation, because a retry after a failure
-- overwrites it. Seconds count from the creation. Indexes: job_pkey, job_history_id, job_attempt_pkey, job_edit_pkey.
-- params: id int8 id
-- shows: at text, after_s seconds, event text, attempt number, host text, generation number hidden, detail text prose
WITH j AS MATERIALIZED (
    SELECT generation, created_at, ready_at, attempted_at, fence, attempt, worker_id, state, finalized_at,
           NULL::timestamptz AS retried_at
      FROM claimd.jobs
     WHERE id = $1
    UNION ALL
    SELECT generation, created_at, ready_at, NULLIF(attempted_at, 'epoch'), fence, attempt, worker_id, state, finalized_at, retried_at
      FROM claimd.job_history
     WHERE id = $1 AND retried_at IS NOT NULL
), a AS MATERIALIZED (
    SELECT * FROM claimd.job_attempt WHERE job_id = $1
), event AS (
    SELECT generation, created_at AS at, 1 AS step, 'created' AS event, NULL::integer AS attempt, NULL::uuid AS worker_id, NULL AS detail
      FROM (SELECT * FROM j ORDER BY generation LIMIT 1) AS first
    UNION ALL
    SELECT generation, ready_at, 2, 'due', NULL, NULL, NULL
      FROM j
     WHERE state <> 'waiting' AND (finalized_at IS NULL OR ready_at <= finalized_at)
    UNION ALL
    SELECT generation, edited_at, 2, 'edited', NULL, NULL,
           format('version %s by %s: %s', version, edited_by, (SELECT string_agg(k, ', ') FROM jsonb_object_keys(after) AS k))
           || CASE WHEN applied_at IS NULL THEN ' (for the next attempt)' ELSE '' END
      FROM claimd.job_edit
     WHERE job_id = $1
    UNION ALL
    SELECT generation, started_at, 3, 'started', attempt, worker_id, NULL FROM a
    UNION ALL
    SELECT generation, ended_at, 4, outcome, attempt, worker_id, error FROM a
    UNION ALL
    SELECT generation, attempted_at, 3, 'started', attempt, worker_id, NULL
      FROM j
     WHERE attempted_at IS NOT NULL AND state IN ('running', 'completed', 'discarded')
       AND NOT EXISTS (SELECT FROM a WHERE a.fence = j.fence)
    UNION ALL
    SELECT generation, finalized_at, 5, state, NULL, NULL, NULL FROM j WHERE finalized_at IS NOT NULL
    UNION ALL
    SELECT generation, retried_at, 6, 'retried', NULL, NULL, NULL FROM j WHERE retried_at IS NOT NULL
)
SELECT {utc e.at} AS at,
       round(extract(epoch FROM e.at - (SELECT min(created_at) FROM j)), 3) AS after_s,
       e.event, e.attempt, w.host, e.generation, e.detail
  FROM event e
  LEFT JOIN claimd.worker w ON w.worker_id = e.worker_id
 ORDER BY e.generation, GREATEST(e.step, 4), e.at, e.step
