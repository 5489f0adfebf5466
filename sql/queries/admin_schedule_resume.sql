-- SPDX-License-Identifier: Apache-2.0
-- Resumes a schedule; returns its next tick. No row if there is no such schedule.
-- params: name text
-- shows: name text, next_at text
-- tables: record schedule
-- none: schedule '{name}' not found
-- method: POST
SELECT name, {utc due_at} AS next_at
  FROM (SELECT s.name, claimd.schedule_resume(s.name) AS due_at FROM claimd.schedule s WHERE s.name = $1) x
