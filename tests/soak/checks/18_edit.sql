-- SPDX-License-Identifier: Apache-2.0
-- inv.S9: a run has the args of the last edit before its claim.
SELECT s.job, format('fence %s was claimed at %s and ran with version %s, not %s', s.fence, r.began, s.v, e.v) AS seen
  FROM soak.start s
  JOIN soak.run r ON r.fence = s.fence
  JOIN soak.job j ON j.id = s.job
 CROSS JOIN LATERAL (SELECT 1 + count(*) AS v FROM claimd.job_edit e WHERE e.job_id = s.job AND e.edited_at < r.began) AS e
 WHERE j.part = 'edited' AND s.v <> e.v
UNION ALL
SELECT j.id, format('%s edits, and it is version %s', count(e.job_id), j.version)
  FROM soak.job j LEFT JOIN claimd.job_edit e ON e.job_id = j.id
 WHERE j.part = 'edited' GROUP BY j.id, j.version HAVING j.version <> 1 + count(e.job_id)
 LIMIT 20;
-- wrong: UPDATE soak.start SET v = v + 1 WHERE job = (SELECT min(job_id) FROM claimd.job_edit)
