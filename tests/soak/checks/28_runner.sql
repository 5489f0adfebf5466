-- SPDX-License-Identifier: Apache-2.0
-- fault.A2: when a runner is killed, its run ends as a crash, unless its worker has a fault too. A job has as many crashes as runs of it
-- have crashed, however many were lost with their workers; a run of an at_most_once kind is lost in both cases.
SELECT s.job, format('the runner with pid %s was killed at %s under fence %s, which ended %s at %s', f.runner, f.at, s.fence,
                     COALESCE(r.outcome, 'unheard'), r.ended) AS seen
  FROM soak.fault f
  JOIN soak.start s ON s.worker = f.worker AND s.runner = f.runner AND s.done_us IS NULL AND NOT s.is_fallen AND to_timestamp(s.t_us / 1e6) < f.at
  LEFT JOIN soak.run r ON r.fence = s.fence
  LEFT JOIN soak.job j ON j.id = s.job
 WHERE f.what = 'kill a runner'
   AND (r.outcome IS DISTINCT FROM CASE j.kind WHEN 's_once' THEN 'lost' ELSE 'crashed' END OR r.ended > f.at + interval '5 s')
   AND j.part IS DISTINCT FROM 'stopped'
   AND NOT EXISTS (SELECT FROM soak.fault o WHERE (o.pid = s.worker OR o.target = 'postgres')
                      AND f.at BETWEEN o.at - interval '10 s' AND COALESCE(o.until, o.at) + interval '10 s')
UNION ALL
SELECT j.id, format('%s crashes, and %s of its runs have crashed', j.crashes, COALESCE(a.crashed, 0))
  FROM soak.job j
  LEFT JOIN (SELECT job_id, generation, count(*) FILTER (WHERE outcome = 'crashed') AS crashed,
                    count(*) FILTER (WHERE outcome = 'lost') AS lost
               FROM claimd.job_attempt GROUP BY job_id, generation) AS a
    ON a.job_id = j.id AND a.generation = j.generation
 WHERE j.crashes NOT BETWEEN COALESCE(a.crashed, 0) AND COALESCE(a.crashed + CASE j.kind WHEN 's_once' THEN a.lost ELSE 0 END, 0)
 LIMIT 20;
-- wrong: UPDATE soak.job SET crashes = crashes + 1 WHERE part = 'crashed'
