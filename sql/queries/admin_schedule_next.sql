-- SPDX-License-Identifier: Apache-2.0
-- The next ticks of a schedule, $2 or 5 of them. No row if there is no such schedule.
-- params: name text, count int4 1..1000
-- shows: due_at text, local_time text
-- tables: next
-- none: schedule '{name}' not found
SELECT {utc n.due_at} AS due_at, n.local_time
  FROM claimd.schedule s CROSS JOIN LATERAL claimd.schedule_next(s.name, COALESCE($2, 5)) n WHERE s.name = $1 ORDER BY n.due_at
