-- SPDX-License-Identifier: Apache-2.0
-- Mends the schedules that wait beyond their next tick, among the next $2 behind the name $1. One row per schedule that was mended,
-- then one without `due`: the name behind which to go on, NULL if all have been looked at. Locks the rows that it changes, those that
-- others hold excepted. Index: schedule_pkey.
-- params: text, int4
SELECT schedule, COALESCE({utc_seconds was}, was::text) AS was,
       {utc_seconds next_at} AS due
  FROM claimd.mend_schedules($1, $2)
