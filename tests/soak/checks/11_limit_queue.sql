-- SPDX-License-Identifier: Apache-2.0
-- inv.S18: a limited queue never runs more jobs at a time than it allows: sweeps over the starts and ends of runs.
SELECT job, format('%s jobs of %s ran at %s, allowed: %s', running, name, at, max_running) AS seen
  FROM (SELECT q.name, q.max_running, e.job, e.at, sum(e.step) OVER (PARTITION BY q.name ORDER BY e.at, e.step) AS running
          FROM claimd.queue q
          JOIN soak.job j ON j.queue = q.name
          JOIN soak.run r ON r.job = j.id
         CROSS JOIN LATERAL (VALUES (r.job, r.began, 1), (r.job, r.ended, -1)) AS e(job, at, step)
         WHERE q.max_running IS NOT NULL) AS sweep
 WHERE running > max_running
 LIMIT 20;
-- wrong: UPDATE soak.run SET began = '2000-01-01' WHERE job IN (SELECT id FROM soak.job WHERE queue = 'soak_five' LIMIT 6)
