-- SPDX-License-Identifier: Apache-2.0
-- The last ten recorded ticks of a schedule, the newest first, and what became of their jobs.
-- params: name text
-- shows: due_at text, outcome text, job_id number, job_state text, late_s seconds
SELECT {utc f.due_at} AS due_at, f.outcome, f.job_id,
       (SELECT j.state FROM claimd.jobs j WHERE j.id = f.job_id ORDER BY j.generation DESC LIMIT 1) AS job_state,
       round(extract(epoch FROM f.fired_at - f.due_at), 3) AS late_s
  FROM claimd.schedule_fire f WHERE f.schedule = $1 ORDER BY f.due_at DESC LIMIT 10
