-- SPDX-License-Identifier: Apache-2.0
-- Mends the schedules that wait beyond their next tick, among the next $2 behind the name $1. One row per schedule that was mended,
-- then one without `due`: the name behind which to go on, NULL if all have been looked at. Locks the rows that it changes, those that
-- others hold excepted. Index: schedule_pkey.
-- params: text, int4
SELECT schedule, COALESCE(to_char(was AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), was::text) AS was,
       to_char(next_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS due
  FROM claimd.mend_schedules($1, $2)
