-- SPDX-License-Identifier: Apache-2.0
-- inv.S2: no job ends twice in one generation; a job that is retried ends once more.
SELECT id AS job, format('ended %s times: %s', count(*), string_agg(state || ' with fence ' || fence, ', ')) AS seen
  FROM claimd.job_history GROUP BY id, generation HAVING count(*) > 1
UNION ALL
SELECT a.job_id, format('retried at %s, and %s in generation %s with %s starts', a.at, j.state, j.generation, count(s.fence))
  FROM soak.act a JOIN soak.job j ON j.id = a.job_id LEFT JOIN soak.start s ON s.job = j.id
 WHERE a.op = 'retry' GROUP BY a.job_id, a.at, j.state, j.generation HAVING j.state <> 'discarded' OR j.generation <> 1 OR count(s.fence) < 2
 LIMIT 20;
-- wrong: INSERT INTO claimd.job_history SELECT * FROM claimd.job_history LIMIT 1
