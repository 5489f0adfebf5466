-- SPDX-License-Identifier: Apache-2.0
-- Open jobs with a key: the running ones, then those that are next, at most 100; of the jobs with two keys, those that were refused.
-- Index: job_exclusive, one look-up per priority.
-- params: key text
-- shows: job number, state text, kind text, queue text, priority number, attempted_at time
-- tables: record key = keys, jobs
SELECT id AS job, state, kind, queue, priority, {utc attempted_at} AS attempted_at
  FROM (SELECT j.id, 'running' AS state, j.kind, j.queue, j.priority, j.attempted_at, '-infinity'::timestamptz AS ready_at
          FROM claimd.exclusive e JOIN claimd.job j ON j.id = e.job_id AND j.fence = e.fence
         WHERE e.key = $1
        UNION ALL
        SELECT n.id, n.state, n.kind, n.queue, n.priority, NULL, n.ready_at
          FROM generate_series(0, 9) AS p
         CROSS JOIN LATERAL (SELECT id, claimd.open_state(state, ready_at, attempt, flags) AS state, kind, queue, priority, ready_at
                               FROM claimd.job
                              WHERE exclusive_key = $1 AND second_key IS NULL AND priority = p AND state = 'available'
                              ORDER BY ready_at, id LIMIT 100) AS n
        UNION ALL
        (SELECT o.id, claimd.open_state(o.state, o.ready_at, o.attempt, o.flags), o.kind, o.queue, o.priority, NULL, o.ready_at
           FROM claimd.key_waiting w JOIN claimd.job o ON o.id = w.job_id
          WHERE w.key = $1 AND w.other_key <> '' AND o.state = 'available'
          ORDER BY w.priority, w.ready_at, w.job_id LIMIT 100)) AS j
 ORDER BY state <> 'running', priority, ready_at, id
 LIMIT 100
