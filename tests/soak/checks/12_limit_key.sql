-- SPDX-License-Identifier: Apache-2.0
-- inv.S18: never more jobs with an exclusive key run at a time than it allows.
SELECT job, format('%s jobs of %s ran at %s, allowed: %s', running, exclusive_key, at, most) AS seen
  FROM (SELECT j.exclusive_key, COALESCE(l.max_running, 1) AS most, e.job, e.at,
               sum(e.step) OVER (PARTITION BY j.exclusive_key ORDER BY e.at, e.step) AS running
          FROM soak.job j
          JOIN soak.run r ON r.job = j.id
          LEFT JOIN claimd.key_limit l ON l.key = j.exclusive_key
         CROSS JOIN LATERAL (VALUES (r.job, r.began, 1), (r.job, r.ended, -1)) AS e(job, at, step)
         WHERE j.exclusive_key IS NOT NULL) AS sweep
 WHERE running > most
 LIMIT 20;
-- wrong: UPDATE soak.run SET began = '2000-01-01' WHERE job IN (SELECT id FROM soak.job WHERE exclusive_key = 'key1' LIMIT 2)
