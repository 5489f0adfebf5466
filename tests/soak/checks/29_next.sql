-- SPDX-License-Identifier: Apache-2.0
-- inv.S9: an edit for the next attempt applies to every run that is claimed after it, and to none that was claimed before.
SELECT s.job, format('edited to version %s under fence %s, and ran with version %s under fence %s', a.v, a.fence, s.v, s.fence) AS seen
  FROM soak.amend a JOIN soak.start s ON s.job = a.job_id
 WHERE CASE WHEN s.fence > a.fence THEN s.v < a.v ELSE s.v >= a.v END
UNION ALL
SELECT NULL, 'nothing was edited between two runs' WHERE NOT EXISTS (SELECT FROM soak.amend a JOIN soak.start s ON s.job = a.job_id AND s.fence > a.fence)
 LIMIT 20;
-- wrong: UPDATE soak.start SET v = 1 WHERE job IN (SELECT job_id FROM soak.amend)
