-- SPDX-License-Identifier: Apache-2.0
-- Corrects the schedules that wait beyond their next tick, among the next $2 behind the name $1. Returns one row per corrected
-- schedule, then one without `due`: the name to continue behind, or NULL if all have been examined. Locks the rows that it changes,
-- except those that others have locked. Index: schedule_pkey.
-- params: text, int4
SELECT schedule, COALESCE({utc_seconds was}, was::text) AS was,
       {utc_seconds next_at} AS due
  FROM claimd.mend_schedules($1, $2)
