-- SPDX-License-Identifier: Apache-2.0
-- B11: every batch is over, its counts are right, and its follow-up ran exactly once, after all its jobs.
SELECT b.follow_up_job AS job, format('batch %s is %s, of %s jobs %s succeeded, its follow-up is there %s times, %s', b.id, b.state, b.jobs,
                                      b.succeeded, count(f.id), string_agg(f.state, ', ')) AS seen
  FROM soak.batch s
  JOIN claimd.batches b ON b.id = s.batch_id
  LEFT JOIN soak.job f ON f.n = -s.n - 1000
 GROUP BY b.id, b.state, b.jobs, b.succeeded, b.follow_up_job, b.over_at
HAVING b.state <> 'over' OR b.jobs <> 50 OR b.succeeded <> 50 OR count(f.id) <> 1 OR min(f.id) <> b.follow_up_job OR min(f.state) <> 'completed'
    OR (SELECT max(j.finalized_at) FROM claimd.batch_job m JOIN soak.job j ON j.id = m.job_id WHERE m.batch_id = b.id) > min(f.created_at)
 LIMIT 20;
-- wrong: UPDATE soak.job SET n = NULL WHERE id = (SELECT max(follow_up_job) FROM claimd.batches)
