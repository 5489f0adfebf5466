-- SPDX-License-Identifier: Apache-2.0
-- The current state of jobs, for following them. If an operator has retried a job, its newest generation counts. `gone`: see
-- job_status(). Indexes: job_pkey, job_history_id.
-- params: int8[]
(SELECT DISTINCT ON (j.id) j.id, j.kind, j.state, j.attempt, w.host,
       CASE WHEN j.state <> 'running' THEN j.error END AS error,
       {utc clock_timestamp()} AS at
  FROM claimd.jobs j
  LEFT JOIN claimd.worker w ON w.worker_id = j.worker_id
 WHERE j.id = ANY ($1)
 ORDER BY j.id, j.generation DESC)
UNION ALL
SELECT u.id, '', 'gone', 0, NULL, NULL, {utc clock_timestamp()}
  FROM unnest($1) AS u(id)
 WHERE NOT EXISTS (SELECT FROM claimd.jobs j WHERE j.id = u.id) AND claimd.may_be_gone(u.id)
