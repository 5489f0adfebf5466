-- SPDX-License-Identifier: Apache-2.0
-- Fires the ticks of at most $1 schedules. Returns one row per tick, then one with outcome 'next' for the time when there is
-- something to do again; late_us: how long that has been due (below 0: not yet; NULL: never). Locks the rows of the schedules that
-- are due, except those that others have locked. Index: schedule_wake.
-- params: int4
SELECT schedule, outcome, COALESCE(job_id, 0) AS job_id, error,
       {utc_seconds due_at} AS due,
       CASE WHEN isfinite(due_at) THEN (EXTRACT(EPOCH FROM clock_timestamp() - due_at) * 1000000)::int8 END AS late_us
  FROM claimd.fire_schedules($1)
