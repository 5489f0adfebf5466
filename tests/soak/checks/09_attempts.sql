-- SPDX-License-Identifier: Apache-2.0
-- inv.S7: no job is charged more attempts, or started more often, than it may be (GUARANTEES 2.1).
SELECT j.id AS job, format('attempt %s, %s starts, of %s', j.attempt, count(s.fence), j.max_attempts) AS seen
  FROM soak.job j LEFT JOIN soak.start s ON s.job = j.id
 GROUP BY j.id, j.attempt, j.max_attempts, j.part
HAVING j.attempt > j.max_attempts OR count(s.fence) > j.max_attempts OR (j.part = 'once' AND count(s.fence) > 1)
 LIMIT 20;
-- wrong: UPDATE soak.job SET attempt = max_attempts + 1 WHERE n = 500
