-- SPDX-License-Identifier: Apache-2.0
-- inv.S15: every job that was inserted exists once, except those that are not kept.
SELECT min(j.id) AS job, format('n = %s is there %s times', w.n, count(j.id)) AS seen
  FROM (SELECT g.n FROM soak.round r CROSS JOIN LATERAL generate_series(r.first, r.first + r.jobs - 1) AS g(n)
         WHERE NOT EXISTS (SELECT FROM soak.refused f WHERE f.n = g.n)
           AND NOT EXISTS (SELECT FROM soak.part p WHERE p.ends = 'gone' AND g.n % 1000 BETWEEN p.low AND p.high)) AS w
  LEFT JOIN soak.job j ON j.n = w.n
 GROUP BY w.n HAVING count(j.id) <> 1
 LIMIT 20;
-- wrong: DELETE FROM soak.job WHERE n = 500
