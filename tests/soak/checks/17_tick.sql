-- SPDX-License-Identifier: Apache-2.0
-- inv.S17: each tick of a schedule fires once, and makes one job.
SELECT f.job_id AS job, format('%s: the tick of %s has %s', t.schedule, t.due_at, COALESCE(f.outcome || ' job ' || j.id, f.outcome, 'no job')) AS seen
  FROM (SELECT s.schedule, due_at FROM soak.ticked s
         CROSS JOIN LATERAL generate_series(s.first_at, LEAST(s.last_at - s.step, s.paused_at + interval '1 min'), s.step) AS due_at) AS t
  FULL JOIN claimd.schedule_fire f USING (schedule, due_at)
  LEFT JOIN soak.job j ON j.id = f.job_id
 WHERE t.schedule IS NULL OR f.outcome IS DISTINCT FROM 'fired' OR j.id IS NULL
UNION ALL
SELECT NULL, format('%s was paused at %s, and had come to %s', schedule, paused_at, last_at) FROM soak.ticked
 WHERE last_at < paused_at - interval '30 s'
UNION ALL
SELECT NULL, format('%s jobs of schedules, %s ticks', (SELECT count(*) FROM soak.job WHERE n = -1), (SELECT count(*) FROM claimd.schedule_fire))
 WHERE (SELECT count(*) FROM soak.job WHERE n = -1) <> (SELECT count(*) FROM claimd.schedule_fire)
 LIMIT 20;
-- wrong: DELETE FROM claimd.schedule_fire WHERE due_at = (SELECT max(due_at) FROM claimd.schedule_fire)
