-- SPDX-License-Identifier: Apache-2.0
-- B12: a job that waits for another starts only after that one has ended.
SELECT a.job_id AS job, format('started at %s, but %s, which it comes after, ended at %s', s.began, a.after_id, j.finalized_at) AS seen
  FROM soak.after a
  JOIN soak.job j ON j.id = a.after_id
  JOIN (SELECT job, min(began) AS began FROM soak.run GROUP BY job) AS s ON s.job = a.job_id
 WHERE s.began < j.finalized_at
 LIMIT 20;
-- wrong: UPDATE soak.run SET began = '2000-01-01' WHERE job = (SELECT max(job_id) FROM soak.after)
