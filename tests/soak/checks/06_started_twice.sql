-- SPDX-License-Identifier: Apache-2.0
-- inv.S19: no claim is started twice, and no two jobs have one fence.
SELECT min(job) AS job, format('fence %s was started %s times', fence, sum(starts)) AS seen
  FROM soak.start GROUP BY fence HAVING sum(starts) > 1
 LIMIT 20;
-- wrong: UPDATE soak.start SET starts = 2 WHERE fence = (SELECT min(fence) FROM soak.start)
