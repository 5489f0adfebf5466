-- SPDX-License-Identifier: Apache-2.0
-- The open jobs that wait for a job, at most 100. Index: job_after_open.
-- params: id int8 id
-- shows: job number, kind text, state text
SELECT a.job_id AS job, j.kind, j.state
  FROM claimd.job_after a
  JOIN claimd.jobs j ON j.id = a.job_id
 WHERE a.after_id = $1 AND a.state IS NULL
 ORDER BY a.job_id
 LIMIT 100
