-- SPDX-License-Identifier: Apache-2.0
-- inv.S1: fences rise with each claim of a job.
SELECT a.job, format('fence %s began at %s, fence %s ended at %s', b.fence, b.began, a.fence, a.ended) AS seen
  FROM soak.run a JOIN soak.run b ON b.job = a.job AND b.fence > a.fence AND b.began < a.ended
 LIMIT 20;
-- wrong: INSERT INTO soak.run SELECT job, fence + 1000000000, worker_id, began - interval '1 s', ended, outcome FROM soak.run LIMIT 1
