-- SPDX-License-Identifier: Apache-2.0
-- The next $2 ticks; no row: there is no such schedule.
-- params: text, int4
SELECT to_char(n.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS due_at, n.local_time
  FROM claimd.schedule s CROSS JOIN LATERAL claimd.schedule_next(s.name, $2) n WHERE s.name = $1 ORDER BY n.due_at
