-- SPDX-License-Identifier: Apache-2.0
-- The jobs that a job waits for, those that are open first; `state`: what they are now, or how they ended.
-- params: int8
SELECT a.after_id AS job, j.kind, COALESCE(a.state, j.state) AS state
  FROM claimd.job_after a
  LEFT JOIN claimd.jobs j ON j.id = a.after_id
 WHERE a.job_id = $1
 ORDER BY a.state IS NOT NULL, a.after_id
 LIMIT 100
