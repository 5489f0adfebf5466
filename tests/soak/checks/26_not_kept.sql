-- SPDX-License-Identifier: Apache-2.0
-- Decision 17: a job of a kind that keeps none is done, leaves no row, and is counted. As many were counted as were inserted, and the
-- handler of each was done, so the completion of each was accepted once.
WITH wanted AS (
    SELECT g.n FROM soak.part p, soak.round r CROSS JOIN LATERAL generate_series(r.first, r.first + r.jobs - 1) AS g(n)
     WHERE p.ends = 'gone' AND g.n % 1000 BETWEEN p.low AND p.high
)
SELECT j.id AS job, format('n = %s is kept, as %s', j.n, j.state) AS seen FROM soak.job j WHERE j.kind = 's_gone'
UNION ALL
SELECT NULL, format('n = %s was not done', w.n) FROM wanted w
 WHERE NOT EXISTS (SELECT FROM soak.start s WHERE s.n = w.n AND s.done_us IS NOT NULL)
UNION ALL
SELECT NULL, format('%s were put in, %s were counted, of which counted_since() knows %s', p.jobs, c.jobs, s.jobs)
  FROM (SELECT count(*) AS jobs FROM wanted) AS p,
       (SELECT COALESCE(sum(jobs), 0) AS jobs FROM claimd.completed_count WHERE kind = 's_gone') AS c,
       (SELECT COALESCE(round(sum(jobs)), 0) AS jobs FROM claimd.counted_since(date_trunc('day', now() - interval '1 day')) WHERE kind = 's_gone') AS s
 WHERE p.jobs <> c.jobs OR c.jobs <> s.jobs
 LIMIT 20;
-- wrong: UPDATE claimd.completed_count SET jobs = jobs + 1 WHERE at = (SELECT max(at) FROM claimd.completed_count)
