-- SPDX-License-Identifier: Apache-2.0
-- A queue with a rate starts no more jobs in any ten seconds than the rate allows, plus what the second before had left.
SELECT job, format('%s starts of %s in the 10 s from %s on, rate %s/s', starts, name, began, rate) AS seen
  FROM (SELECT q.name, q.rate, r.job, r.began,
               count(*) OVER (PARTITION BY q.name ORDER BY r.began RANGE BETWEEN CURRENT ROW AND interval '10 s' FOLLOWING) AS starts
          FROM claimd.queue q JOIN soak.job j ON j.queue = q.name JOIN soak.run r ON r.job = j.id
         WHERE q.rate IS NOT NULL) AS w
 WHERE starts > 1.05 * rate * 10 + rate + 1
 LIMIT 20;
-- wrong: UPDATE claimd.queue SET rate = 0.01 WHERE rate IS NOT NULL
